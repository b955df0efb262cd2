//! The client of `proto/modal.proto`, and with the feature `testing` its server. protox reads it: no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let described = protox::compile(["modal.proto"], ["proto"])?;
    let server = cfg!(feature = "testing");
    tonic_prost_build::configure().build_server(server).compile_fds(described)?;
    Ok(())
}
