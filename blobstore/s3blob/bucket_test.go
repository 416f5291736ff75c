package s3blob_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/s3blob"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}
	older := map[string]string{"AWS_DEFAULT_REGION": "eu-west-2"}
	for _, c := range []struct {
		url         string
		environment map[string]string
		want        s3blob.Bucket
	}{
		{"s3://bucket", nil, s3blob.Bucket{Name: "bucket", Region: "us-east-1", Endpoint: "https://s3.us-east-1.amazonaws.com"}},
		{"s3://bucket/", nil, s3blob.Bucket{Name: "bucket", Region: "us-east-1", Endpoint: "https://s3.us-east-1.amazonaws.com"}},
		{"s3://bucket", environment, s3blob.Bucket{Name: "bucket", Region: "eu-west-1", Endpoint: "https://s3.eu-west-1.amazonaws.com"}},
		{"s3://bucket", older, s3blob.Bucket{Name: "bucket", Region: "eu-west-2", Endpoint: "https://s3.eu-west-2.amazonaws.com"}},
		{"s3://bucket?region=cn-north-1", environment, s3blob.Bucket{
			Name: "bucket", Region: "cn-north-1", Endpoint: "https://s3.cn-north-1.amazonaws.com.cn",
		}},
		{"s3://my.bucket/Forms/prod-1/?endpoint=s3.example.org:9000&region=r", nil, s3blob.Bucket{
			Name: "my.bucket", Prefix: "Forms/prod-1", Region: "r", Endpoint: "s3.example.org:9000",
		}},
		{"s3://bucket?endpoint=http://[::1]:9000&pathStyle=true", nil, s3blob.Bucket{
			Name: "bucket", Region: "us-east-1", Endpoint: "http://[::1]:9000", Addressing: s3blob.PathAddressing,
		}},
		{"s3://bucket?endpoint=https%3A%2F%2Fs3.example.org%2F&pathStyle=false", nil, s3blob.Bucket{
			Name: "bucket", Region: "us-east-1", Endpoint: "https://s3.example.org/", Addressing: s3blob.HostAddressing,
		}},
	} {
		got, err := s3blob.ParseURL(c.url, func(name string) string { return c.environment[name] })
		if err != nil || got != c.want {
			t.Errorf("ParseURL(%q) = %+v, %v; want %+v", c.url, got, err, c.want)
		}
		if _, err := s3blob.New(got, s3blob.StaticCredentials("key", "secret", ""), nil); err != nil {
			t.Errorf("New of %q: %v", c.url, err)
		}
	}
}

func TestParseBadURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                     "s3://",
		"bucket":               "s3://",
		"s3:bucket":            "s3://",
		"S4://bucket":          "s3://",
		"https://bucket":       "s3://",
		"s3://":                "bucket",
		"s3://Bucket":          "bucket",
		"s3://b":               "bucket",
		"s3://bucket:80":       "bucket",
		"s3://key:hush@bucket": "credentials",
		"s3://bucket#hush":     "fragment",
		"s3://bucket\x7fhush":  "not a URL",
		"s3://bucket/../other": "prefix",
		"s3://bucket//a":       "prefix",
		"s3://bucket/.hidden":  "prefix",
		"s3://bucket/ä":        "prefix",
		"s3://bucket/" + strings.Repeat("a/", 260): "prefix",
		"s3://bucket?regoin=x":                     `"regoin"`,
		"s3://bucket?secret=hush":                  `"secret"`,
		"s3://bucket?region=":                      `"region"`,
		"s3://bucket?region=a&region=b":            `"region"`,
		"s3://bucket?region=a/b":                   "region",
		"s3://bucket?pathStyle=maybe":              `"pathStyle"`,
		"s3://bucket?endpoint=ftp://host":          "ftp",
		"s3://bucket?endpoint=http://host/path":    "host and a port",
		"s3://bucket?endpoint=http://host?x=1":     "host and a port",
		"s3://bucket?endpoint=http://key:hush@h":   "credentials",
		"s3://bucket?endpoint=http://":             "endpoint",
		"s3://bucket?a=%zz":                        "parameters",
	} {
		_, err := s3blob.ParseURL(url, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseURL(%q): %v, want something about %q", url, err, want)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("ParseURL(%q) repeats what may be secret: %v", url, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := s3blob.Bucket{Name: "bucket"}
	secret := s3blob.StaticCredentials("key", "secret", "")
	for name, c := range map[string]struct {
		bucket      s3blob.Bucket
		credentials s3blob.Credentials
		opts        *s3blob.Options
	}{
		"no bucket":            {s3blob.Bucket{}, secret, nil},
		"an unknown style":     {s3blob.Bucket{Name: "bucket", Addressing: 7}, secret, nil},
		"an endpoint's path":   {s3blob.Bucket{Name: "bucket", Endpoint: "http://host/path"}, secret, nil},
		"no credentials":       {good, s3blob.Credentials{}, nil},
		"too little memory":    {good, secret, &s3blob.Options{Memory: 1 << 20}},
		"a negative timeout":   {good, secret, &s3blob.Options{Timeout: -time.Second}},
		"negative memory":      {good, secret, &s3blob.Options{Memory: -1}},
		"a prefix that climbs": {s3blob.Bucket{Name: "bucket", Prefix: "../other"}, secret, nil},
	} {
		if _, err := s3blob.New(c.bucket, c.credentials, c.opts); err == nil {
			t.Errorf("New with %s: no error", name)
		}
	}
}

// The address of a request, and the region of its signature.
func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SESSION_TOKEN", "")
	t.Setenv("AWS_PROFILE", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	file := "[default]\naws_access_key_id = from-file\naws_secret_access_key = secret\n"
	noError(t, os.WriteFile(filepath.Join(dir, "credentials"), []byte(file), 0o600))
	static := s3blob.StaticCredentials("static", "secret", "token")
	for _, c := range []struct {
		url         string
		credentials s3blob.Credentials
		want, key   string
	}{
		{"s3://bucket", static, "https://bucket.s3.dualstack.us-east-1.amazonaws.com/key", "static"},
		{"s3://bucket?pathStyle=true&region=eu-west-1", static, "https://s3.dualstack.eu-west-1.amazonaws.com/bucket/key", "static"},
		{"s3://bucket/A/b?endpoint=http://s3.example.org:9000", static, "http://s3.example.org:9000/bucket/A/b/key", "static"},
		{"s3://bucket?endpoint=s3.example.org&pathStyle=false", static, "https://bucket.s3.example.org/key", "static"},
		{"s3://bucket?endpoint=s3.example.org", s3blob.AWSCredentials(), "https://s3.example.org/bucket/key", "from-file"},
	} {
		bucket := must(s3blob.ParseURL(c.url, nil))
		var got *http.Request
		store := must(s3blob.New(bucket, c.credentials, &s3blob.Options{
			Transport: transport(func(req *http.Request) (*http.Response, error) {
				got = req
				return answer(req, 403, "AccessDenied"), nil
			}),
		}))
		if _, err := store.Stat(t.Context(), "key"); err == nil {
			t.Error("no error")
		}
		if got.URL.String() != c.want || !strings.Contains(got.Header.Get("Authorization"), "Credential="+c.key+"/") {
			t.Errorf("%s: a request to %s, authorized by %q; want %s by %s", c.url, got.URL, got.Header.Get("Authorization"), c.want, c.key)
		}
	}
}

// A transport is between a store and its server.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answer returns an error response like an S3 server's.
func answer(req *http.Request, status int, code string) *http.Response {
	body := "<Error><Code>" + code + "</Code><Message>injected</Message></Error>"
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}
}
