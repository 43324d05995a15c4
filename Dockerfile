# A machine on which everything is set up, and the first backend is built and trained:
#
#     docker build -t torch_openreg . && docker run -it torch_openreg
#
FROM debian:12 AS tools
RUN apt-get -q update \
    && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends \
        ca-certificates g++ git python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

FROM tools
WORKDIR /torch_openreg
COPY . .
RUN ./dev first
CMD ["bash"]
