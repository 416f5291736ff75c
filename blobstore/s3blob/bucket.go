package s3blob

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/formsvc/toolkit/blobstore"
)

// DefaultRegion is the region of a [Bucket] without one; most servers other than AWS ignore it.
const DefaultRegion = "us-east-1"

// A Bucket is the location of blobs.
type Bucket struct {
	// Name is the name of the bucket; required.
	Name string
	// Prefix is the prefix of the objects' names, without the slash that follows it: segments of
	// letters, digits, "-", "_" and ".", at most 500 bytes. Several stores may share a bucket if no
	// prefix is the beginning of another. Defaults to none.
	Prefix string
	// Region defaults to DefaultRegion.
	Region string
	// Endpoint is the server's address, such as "https://s3.example.org". The default scheme is
	// https. Defaults to AWS in the region.
	Endpoint string
	// Addressing says how requests name the bucket. Defaults to AutoAddressing.
	Addressing Addressing
}

// Addressing says how requests name the bucket.
type Addressing int

// The kinds of [Addressing].
const (
	AutoAddressing Addressing = iota // in the host on AWS, in the path elsewhere
	PathAddressing                   // https://s3.example.org/BUCKET/KEY
	HostAddressing                   // https://BUCKET.s3.example.org/KEY
)

func (a Addressing) lookup() minio.BucketLookupType {
	return [...]minio.BucketLookupType{minio.BucketLookupAuto, minio.BucketLookupPath, minio.BucketLookupDNS}[a]
}

// ParseURL parses a bucket from "s3://BUCKET[/PREFIX]?endpoint=…&region=…". The parameters are
// optional:
//
//	endpoint   Bucket.Endpoint
//	region     Bucket.Region; without it AWS_REGION, then AWS_DEFAULT_REGION
//	pathStyle  true: PathAddressing; false: HostAddressing
//
// Any other parameter is an error. getenv looks up environment variables, as [os.Getenv] does; nil
// means that there are none. The URL must not contain credentials.
func ParseURL(raw string, getenv func(string) string) (Bucket, error) {
	b, err := parseURL(raw, getenv)
	if err == nil {
		_, _, err = b.complete()
	}
	if err != nil {
		return Bucket{}, fmt.Errorf("s3blob: URL of a bucket: %w", err)
	}
	return b, nil
}

func parseURL(raw string, getenv func(string) string) (Bucket, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return Bucket{}, errors.New("not a URL") // the parser's error contains the URL, perhaps with a secret
	case u.Scheme != "s3" || u.Opaque != "":
		return Bucket{}, errors.New("it does not begin with s3://")
	case u.User != nil:
		return Bucket{}, errors.New("credentials don't belong into it")
	case u.Fragment != "":
		return Bucket{}, errors.New("it has a fragment")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Bucket{}, errors.New("its parameters can't be read")
	}
	for name, values := range query {
		if !slices.Contains([]string{"endpoint", "region", "pathStyle"}, name) || len(values) != 1 || values[0] == "" {
			return Bucket{}, fmt.Errorf("parameter %q is unknown, or doesn't have one value", name)
		}
	}
	b := Bucket{
		Name: u.Host, Prefix: strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/"),
		Endpoint: query.Get("endpoint"), Region: query.Get("region"),
	}
	switch style := query.Get("pathStyle"); style {
	case "":
	case "true":
		b.Addressing = PathAddressing
	case "false":
		b.Addressing = HostAddressing
	default:
		return Bucket{}, errors.New("parameter \"pathStyle\" must be true or false")
	}
	if getenv != nil {
		b.Region = cmp.Or(b.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"))
	}
	return b, nil
}

// maxPrefix leaves room for the slash and a key in the 1024 bytes that S3 allows.
const maxPrefix = 500

// complete sets defaults and checks the other fields. It returns the host, with the port if there is
// one, and whether the scheme is https.
func (b *Bucket) complete() (host string, secure bool, err error) {
	if err := s3utils.CheckValidBucketNameStrict(b.Name); err != nil {
		return "", false, err
	}
	if b.Prefix != "" && (len(b.Prefix) > maxPrefix || blobstore.CheckKey(strings.ToLower(b.Prefix)) != nil) {
		return "", false, fmt.Errorf("prefix %q: want segments of letters, digits, \"-\", \"_\" and \".\"", b.Prefix)
	}
	if b.Region == "" {
		b.Region = DefaultRegion
	}
	if strings.Trim(b.Region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		return "", false, fmt.Errorf("region %q", b.Region) // it becomes part of the host name
	}
	if b.Endpoint == "" {
		b.Endpoint = "https://s3." + b.Region + ".amazonaws.com"
		if strings.HasPrefix(b.Region, "cn-") {
			b.Endpoint += ".cn"
		}
	}
	if b.Addressing < AutoAddressing || b.Addressing > HostAddressing {
		return "", false, fmt.Errorf("addressing %d", b.Addressing)
	}
	return parseEndpoint(b.Endpoint)
}

func parseEndpoint(endpoint string) (host string, secure bool, err error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return "", false, errors.New("the endpoint is not an address such as https://s3.example.org")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", false, fmt.Errorf("the endpoint's scheme %q is neither https nor http", u.Scheme)
	case u.User != nil:
		return "", false, errors.New("credentials don't belong into the endpoint")
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		return "", false, errors.New("the endpoint has more than a host and a port")
	}
	return u.Host, u.Scheme == "https", nil
}
