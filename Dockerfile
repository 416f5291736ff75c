# formsvc in an image that has nothing else in it:
#
#	docker build -t formsvc .
#	docker run -d --name formsvc -p 127.0.0.1:8080:8080 -v formsvc:/data formsvc
#
# To build it needs the base image and the Go module proxy. To run it needs the volume, and can do with a file system that is
# otherwise read-only (--read-only --tmpfs /tmp). cmd/formsvc/README.md has the rest.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o /image/formsvc ./cmd/formsvc
# Certificates, to call webhooks and S3; no time zones, since everything is told in UTC; /tmp for SQLite when it sorts much.
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
