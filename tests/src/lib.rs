//! Fixtures shared by the black-box tests.
