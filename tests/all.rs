//! Every black-box test of Furlough, in one binary: the AWS SDK makes each further one large.

mod architecture;
