package httpx_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

func TestUpload(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	content := noise(600_000)
	a := w.do("POST", list, formOf(part("module", "cv"), filePart(content, "Content-Type: Text/Plain;charset=UTF-8")), asForm).is(201, "")
	a.has(`"a.txt"`, "name").has(`"text/plain; charset=UTF-8"`, "contentType").has("600000", "size").has(`"cv"`, "module")
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	if a.text("sha256") != sum || a.header.Get("Etag") != `"`+sum+`"` {
		t.Errorf("%s %v", a.body, a.header)
	}
	if got := w.do("GET", a.header.Get("Location"), "").is(200, ""); got.body != content || got.header.Get("Etag") != a.header.Get("Etag") {
		t.Error("another content or ETag came back")
	}
	event := w.do("GET", "/v1/events?event=file.uploaded", "").is(200, "")
	if !strings.Contains(event.body, `"file":`+a.body) {
		t.Errorf("%s is not in %s", a.body, event.body)
	}
}

// How names, types and modules are stored, for both kinds of upload.
func TestValidUploads(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	long := strings.Repeat("\U0001F600", 200)
	const octets = "application/octet-stream"
	form := []func(*http.Request){asForm}
	for _, row := range []struct {
		what, body   string
		edits        []func(*http.Request)
		name, module string
		contentType  string
		content      string
	}{
		{"module last", formOf(filePart("x"), part("module", "cv")), form, "a.txt", "cv", octets, "x"},
		{"empty file", formOf(filePart("")), form, "a.txt", "", octets, ""},
		{"longest module", formOf(part("module", long), filePart("x")), form, "a.txt", long, octets, "x"},
		{"no name", formOf(part("file", "x")), form, "file", "", octets, "x"},
		{"content like a boundary", formOf(filePart("\r\n--a--bound\r\n--" + boundary + "x\r\n--\r\n")), form, "a.txt", "", octets, "\r\n--a--bound\r\n--" + boundary + "x\r\n--\r\n"},
		{"preamble and epilogue", "preamble\r\n\r\n" + formOf(filePart("x")) + "epilogue", form, "a.txt", "", octets, "x"},
		{"transfer encodings", formOf(filePart("x", "Content-Transfer-Encoding: BINARY"), part("module", "m", "Content-Transfer-Encoding: 8bit")), form, "a.txt", "m", octets, "x"},
		{"raw with an invalid type", "x", []func(*http.Request){header("Content-Type", "x")}, "a.json", "", octets, "x"},
		{"raw with a module", "x", []func(*http.Request){func(r *http.Request) { r.URL.RawQuery = "module=" + strings.Repeat("%F0%9F%98%80", 200) }}, "a.json", long, "application/json", "x"},
		{"raw, another multipart", "x", []func(*http.Request){header("Content-Type", "multipart/mixed; boundary=a")}, "a.json", "", "multipart/mixed; boundary=a", "x"},
	} {
		a := w.do("POST", list, row.body, row.edits...).is(201, "")
		a.what = row.what
		module, _ := a.at("module").(string)
		if a.text("name") != row.name || module != row.module || a.text("contentType") != row.contentType {
			a.errorf("%s", a.body)
		}
		if got := w.do("GET", a.header.Get("Location"), "").is(200, ""); got.body != row.content {
			a.errorf("%q came back", got.body)
		}
	}
	if w.log.Len() > 0 {
		t.Errorf("log: %s", w.log)
	}
}

func TestInvalidUploads(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	good := formOf(filePart("content"))
	typed := func(contentType string) []func(*http.Request) {
		return []func(*http.Request){asForm, header("Content-Type", contentType)}
	}
	form := []func(*http.Request){asForm}
	for _, row := range []struct {
		what, body string
		edits      []func(*http.Request)
		status     int
		code       string
	}{
		{"neither form nor file name", "x", []func(*http.Request){without("Content-Disposition")}, 415, "unsupported_media_type"},
		{"no boundary", good, typed("multipart/form-data"), 400, "invalid_boundary"},
		{"boundary of 71", good, typed("multipart/form-data; boundary=" + strings.Repeat("x", 71)), 400, "invalid_boundary"},
		{"another boundary", good, typed("multipart/form-data; boundary=other"), 400, "multipart_incomplete"},
		{"empty form body", "", form, 400, "multipart_incomplete"},
		{"no file", formOf(part("module", "x")), form, 400, "file_required"},
		{"two files", formOf(filePart("x"), filePart("y")), form, 400, "repeated_part"},
		{"unknown part", formOf(part("x", "x"), filePart("x")), form, 400, "unknown_part"},
		{"part without a disposition", formOf("Content-Type: text/plain\r\n\r\nx"), form, 400, "malformed_multipart"},
		{"part with two dispositions", formOf(filePart("x", `Content-Disposition: form-data; name="x"`)), form, 400, "malformed_multipart"},
		{"part that is an attachment", formOf("Content-Disposition: attachment; name=file\r\n\r\nx"), form, 400, "malformed_multipart"},
		{"base64", formOf(filePart("eA==", "Content-Transfer-Encoding: base64")), form, 400, "unsupported_transfer_encoding"},
		{"nested", formOf(filePart(good, "Content-Type: Multipart/mixed; boundary=b")), form, 400, "nested_multipart"},
		{"long module", formOf(part("module", strings.Repeat("x", 801)), filePart("x")), form, 422, "validation_failed"},
		{"module that is not UTF-8", formOf(filePart("x"), part("module", "\xff")), form, 422, "validation_failed"},
		{"no final boundary", strings.TrimSuffix(good, "--\r\n"), form, 400, "multipart_incomplete"},
		{"end in the content", good[:len(good)-20], form, 400, "multipart_incomplete"},
		{"end in a header after the file", good[:len(good)-4] + "\r\nContent-Disposition: form-data", form, 400, "multipart_incomplete"},
		{"something on the boundary's line", strings.TrimSuffix(good, "\r\n") + "x\r\n", form, 400, "malformed_multipart"},
		{"long epilogue", good + strings.Repeat("x", 20<<10), form, 400, "trailing_data"},
		{"long preamble", strings.Repeat("x\r\n", 8<<10) + good, form, 400, "part_header_too_large"},
		{"long header", formOf(filePart("x", "X: "+strings.Repeat("x", 24<<10))), form, 400, "part_header_too_large"},
		{"name of 50 KiB after the file", formOf(filePart("x"), part(strings.Repeat("x", 50<<10), "x")), form, 400, "part_header_too_large"},
		{"10 001 parts", strings.Repeat("--"+boundary+"\r\n"+part("module", "")+"\r\n", 10_001) + good, form, 400, "repeated_part"},
		{"query on a form", good, []func(*http.Request){asForm, func(r *http.Request) { r.URL.RawQuery = "module=x" }}, 400, "invalid_parameter"},
		{"long module in the query", "x", []func(*http.Request){func(r *http.Request) { r.URL.RawQuery = "module=" + strings.Repeat("x", 201) }},
			400, "invalid_parameter"},
	} {
		a := w.do("POST", list, row.body, row.edits...)
		a.what = row.what
		a.is(row.status, row.code)
	}
	w.isEmpty(list)
	a := w.do("POST", list, "x", func(r *http.Request) { r.URL.RawQuery = "module=" + strings.Repeat("x", 201) })
	a.faults("module too_long")
	w.do("POST", list, formOf(part("module", strings.Repeat("é", 500)), filePart("x")), asForm).is(422, "").faults("/module too_long")
}

// G5: the limit is exact to the byte.
func TestUploadLimit(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	at, above := noise(maxFile), noise(maxFile+1)
	unannounced := func(r *http.Request) { r.ContentLength = -1 }
	w.do("POST", list, at).is(201, "").has("1000000", "size")
	w.do("POST", list, at, unannounced).is(201, "")
	w.do("POST", list, formOf(part("module", strings.Repeat("x", 200)), filePart(at)), asForm).is(201, "").has("1000000", "size")
	before := w.blobCount()
	for _, body := range []string{above, formOf(filePart(above)), above + above} {
		for _, edit := range []func(*http.Request){unannounced, func(*http.Request) {}} {
			edits := []func(*http.Request){edit}
			if strings.HasPrefix(body, "--") {
				edits = append(edits, asForm)
			}
			a := w.do("POST", list, body, edits...).is(413, "file_too_large")
			if !strings.Contains(a.problem().Detail, "1000000 bytes") || a.header.Get("Connection") != "close" {
				a.errorf("%v %s", a.header, a.body)
			}
		}
	}
	if w.total(list) != 3 || w.blobCount() != before {
		t.Error("something was stored")
	}
}

// G9: digests of uploads.
func TestContentDigest(t *testing.T) {
	const content = "some content"
	form := formOf(filePart(content)) + "epilogue"
	sha512Digest := func(s string) string {
		sum := sha512.Sum512([]byte(s))
		return "sha-512=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	}
	inPart := func(digest string) string { return formOf(filePart(content, "Content-Digest: "+digest)) }
	w := newWorld(t, nil)
	list := w.uploads()
	for _, row := range []struct {
		what, body string
		digests    []string
		status     int
		code       string
	}{
		{"good, both", content, []string{sha256Digest(content) + ", \t" + sha512Digest(content)}, 201, ""},
		{"unknown", content, []string{"md5=:AAAA:, *x-1=::"}, 201, ""},
		{"good, form", form, []string{sha256Digest(form)}, 201, ""},
		{"good, part", inPart(sha256Digest(content)), nil, 201, ""},
		{"bad SHA-256", content, []string{sha256Digest("x")}, 400, "digest_mismatch"},
		{"bad SHA-512", content, []string{sha512Digest("x")}, 400, "digest_mismatch"},
		{"the file's for the form", form, []string{sha256Digest(content)}, 400, "digest_mismatch"},
		{"without the epilogue", form, []string{sha256Digest(strings.TrimSuffix(form, "epilogue"))}, 400, "digest_mismatch"},
		{"bad, part", inPart(sha512Digest("x")), nil, 400, "digest_mismatch"},
		{"malformed", content, []string{"sha-256"}, 400, "invalid_header"},
		{"short", content, []string{"sha-256=:AAAA:"}, 400, "invalid_header"},
		{"unknown and no byte sequence", content, []string{"md5=AAAA"}, 400, "invalid_header"},
	} {
		files, blobs := w.total(list), w.blobCount()
		edits := []func(*http.Request){header("Content-Digest", row.digests...)}
		if strings.HasPrefix(row.body, "--") {
			edits = append(edits, asForm)
		}
		a := w.do("POST", list, row.body, edits...)
		a.what = row.what
		if a.is(row.status, row.code); row.status != 201 && (w.total(list) != files || w.blobCount() != blobs) {
			a.errorf("something was stored")
		}
	}
}

// The order of checks: an upload first checks its headers, then looks for the record, then reads the body.
func TestOrderOfChecksOfUploads(t *testing.T) {
	w := newWorld(t, nil)
	nowhere := strings.TrimSuffix(w.uploads(), "/files")[:len("/v1/campaigns/")+36] + "/responses/" + nobody + "/files"
	bad := func(r *http.Request) { r.Body = unreadableBody{t} }
	large := func(r *http.Request) { r.ContentLength = 3 * maxFile }
	for _, edits := range [][]func(*http.Request){{bad}, {bad, asForm}} {
		if a := w.do("POST", nowhere, "x", edits...).is(404, "not_found"); a.header.Get("Connection") != "close" {
			t.Error("the connection waits for the rest of the body")
		}
	}
	w.do("POST", nowhere, "x", bad, large).is(413, "file_too_large")
	w.do("POST", nowhere, "x", bad, large, asForm).is(413, "file_too_large")
	w.do("POST", nowhere, "x", bad, large, header("Content-Digest", "x")).is(400, "invalid_header")
	w.do("POST", nowhere+"?x=1", "x", bad, without("Content-Disposition")).is(415, "")
}

type unreadableBody struct{ t *testing.T }

func (b unreadableBody) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, errors.New("must not be read")
}

func (unreadableBody) Close() error { return nil }

// Failures of the blob store during an upload.
func TestFailuresOfUploads(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	for err, status := range map[error]int{
		blobstore.ErrNoSpace: 507, formsvc.ErrOtherBlobs: 503, blobstore.ErrUnavailable: 503, errors.New("hunter2"): 500,
	} {
		w.log.Reset()
		w.blobs.putErr = fmt.Errorf("the cause: %w", err)
		a := w.do("POST", list, "x").is(status, "")
		if strings.Contains(a.body, "cause") || strings.Contains(a.body, "hunter2") || !strings.Contains(w.log.String(), "the cause") {
			a.errorf("%s\nlog: %s", a.body, w.log)
		}
	}
	w.isEmpty(list)
}

// Without a blob store, file routes reply 501.
func TestFilesAreNotSupported(t *testing.T) {
	w := newWorld(t, nil)
	list, file := w.uploads(), w.upload("x")
	w.use(w.store, nil, func(o *formsvc.Options) { o.Blobs = nil })
	w.do("POST", list, "x").is(501, "not_supported")
	w.do("GET", list, "").is(501, "not_supported")
	w.do("GET", file, "").is(501, "not_supported")
	w.do("GET", "/readyz", "").is(200, "")
}

// File names as browsers and programs write them.
func TestUploadFileNames(t *testing.T) {
	w := newWorld(t, nil)
	list := w.response(w.campaign(plainCampaign)) + "/files"
	for disposition, want := range map[string]string{
		"filename*=UTF-8''CV%20(1).pdf":                      "CV (1).pdf",
		"filename*=utf-8''it's%20(*)%20~!.txt":               "it's (*) ~!.txt",
		`filename="old.txt"; filename*=UTF-8''new%20(2).txt`: "new (2).txt",
		`FileName = "a;b (1).txt" ;`:                         "a;b (1).txt",
		`filename="naïve.txt"; size=3`:                       "naïve.txt",
		`filename*="UTF-8''quoted%20(1).txt"`:                "quoted (1).txt",
		`filename=a.txt; filename*=ISO-8859-1''%A3.txt`:      "a.txt",
	} {
		a := w.do("POST", list, "x", named("attachment; "+disposition)).is(201, "")
		equal(t, a.text("name"), want, "%s: %q", disposition)
	}
	for disposition, why := range map[string]string{
		"attachment; filename*=UTF-8''CV (1).pdf":     "can't be read",
		"attachment; filename*=UTF-8''CV%2.pdf":       "filename* that is not",
		"attachment; filename*=ISO-8859-1''%A3":       "filename* that is not",
		"attachment; filename=CV (1).pdf":             "can't be read",
		`attachment; filename="x`:                     "can't be read",
		"attachment; filename*=UTF-8''a; filename*=b": "can't be read",
		"inline; filename=x":                          "must be attachment",
	} {
		a := w.do("POST", list, "x", named(disposition)).is(400, "invalid_header")
		if detail := a.text("detail"); !strings.Contains(detail, why) {
			t.Errorf("%s: %q does not tell %q", disposition, detail, why)
		}
	}
}
