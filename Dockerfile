# An image with only formsvc in it:
#
#	docker build -t formsvc .
#	docker run -d --name formsvc -p 127.0.0.1:8080:8080 -v formsvc:/data formsvc
#
# The build needs the base image and the Go module proxy. The container needs the volume; the rest of its file system can be read-only
# (--read-only --tmpfs /tmp). cmd/formsvc/README.md has the rest.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o /image/formsvc ./cmd/formsvc
# Certificates for webhooks and S3, and /tmp for SQLite's large sorts. Time zones are not needed: all times are in UTC.
RUN install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt && \
	install -d -m 1777 /image/tmp && install -d -m 0700 /owned/data

FROM scratch
COPY --from=build /image/ /
COPY --from=build --chown=65532:65532 /owned/ /
USER 65532:65532
WORKDIR /data
VOLUME /data
ENV FORMSVC_DATA=/data FORMSVC_ADDR=:8080 FORMSVC_LOG_FORMAT=json
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=2m CMD ["/formsvc", "health"]
ENTRYPOINT ["/formsvc"]
CMD ["serve"]
