# Build the package first: npm run package -- amd64      (or arm64, for that processor)
FROM debian:12-slim

ARG TARGETARCH=amd64
COPY build/reelgate_*_${TARGETARCH}.deb /tmp/
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates /tmp/reelgate_*.deb \
 && rm -rf /var/lib/apt/lists/* /tmp/reelgate_*.deb

# The key is next to the data folder, so that one volume has both.
ENV HOST=0.0.0.0 REELGATE_DATA=/var/lib/reelgate/data
VOLUME /var/lib/reelgate
USER reelgate
EXPOSE 8080
# A stop takes up to 10 s.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["/usr/lib/reelgate/node/bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT ?? 8080}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["/usr/lib/reelgate/node/bin/node", "/usr/lib/reelgate/bin/main.js", "serve"]
