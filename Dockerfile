# syntax=docker/dockerfile:1
# One of the project's two images:
#   docker build --build-arg COMPONENT=hub   -t tenant-records/hub:0.1.0 .
#   docker build --build-arg COMPONENT=agent -t tenant-records/agent:0.1.0 .

FROM rust:1.95-bookworm AS build
ARG COMPONENT=hub
WORKDIR /src
COPY . .
# A static binary; naming the target keeps the flag away from build scripts and procedural macros.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    target="$(rustc -vV | sed -n 's/^host: //p')" && \
    RUSTFLAGS="-C target-feature=+crt-static" \
      cargo build --release --locked --target "$target" --package "tenant-records-${COMPONENT}" && \
    cp "target/$target/release/tenant-records-${COMPONENT}" /tenant-records

FROM scratch
# For API servers with a certificate from a public authority.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /tenant-records /tenant-records
USER 10001:10001
ENTRYPOINT ["/tenant-records"]
