# syntax=docker/dockerfile:1
#
# Two images from one build:
#   docker build .                   only the gateway: no shell, no root
#   docker build --target servers .  with Node.js and uv, for stdio servers
#
# The configuration is /config/junctor/junctor.json; without one, only the
# built-in server is available. All data is stored in /data.

ARG GO_VERSION=1.26.8
ARG NODE_VERSION=22

# The page and the script engine are the same for every platform, so they are
# built on the builder's platform.
FROM --platform=$BUILDPLATFORM node:${NODE_VERSION}-bookworm-slim AS page
WORKDIR /src/web
COPY web/package.json web/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY web/ ./
COPY internal/toolsapi/openapi.json /src/internal/toolsapi/
RUN npm run build
WORKDIR /src/internal/script/engine
COPY internal/script/engine/ ./
RUN npm ci --no-audit --no-fund && npm run build

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=page /src/internal/webui/dist/ internal/webui/dist/
COPY --from=page /src/internal/script/engine/dist/ internal/script/engine/dist/
ARG TARGETOS TARGETARCH VERSION=dev
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION#v}" -o /out/junctor ./cmd/junctor \
    && mkdir -p /out/data

# The gateway with the runtimes that most stdio servers need.
FROM node:${NODE_VERSION}-bookworm-slim AS servers
COPY --from=ghcr.io/astral-sh/uv:0.9 /uv /uvx /usr/local/bin/
COPY --from=build /out/junctor /usr/local/bin/junctor
COPY --from=build --chown=1000:1000 /out/data /data
ENV XDG_DATA_HOME=/data \
    HOME=/data \
    XDG_CONFIG_HOME=/config
USER 1000:1000
WORKDIR /data
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/junctor", "--quiet", "health", "--url", "http://127.0.0.1:8787"]
ENTRYPOINT ["/usr/local/bin/junctor"]
CMD ["serve", "--listen", "0.0.0.0:8787"]

# Only the gateway; of a system it needs nothing but certificates.
FROM gcr.io/distroless/static-debian12:nonroot AS gateway
COPY --from=build /out/junctor /usr/local/bin/junctor
COPY --from=build --chown=65532:65532 /out/data /data
ENV XDG_DATA_HOME=/data \
    XDG_CONFIG_HOME=/config
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/junctor", "--quiet", "health", "--url", "http://127.0.0.1:8787"]
ENTRYPOINT ["/usr/local/bin/junctor"]
CMD ["serve", "--listen", "0.0.0.0:8787"]
