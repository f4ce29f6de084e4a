# The image of a release: the static binary and nothing else. Made by
# scripts/release.sh, or by hand after it:
#
#   docker build --tag tbl .
#   docker run --rm tbl validate
#   docker run --rm -p 8080:8080 tbl serve --listen 0.0.0.0:8080
#
# There are no root certificates in it: for a target with https, mount them and
# name the file with --cacert.
FROM scratch
ARG BINARY=dist/tbl_linux_amd64
COPY ${BINARY} /tbl
# Nobody: it needs no rights.
USER 65534:65534
EXPOSE 8080
ENTRYPOINT ["/tbl"]
