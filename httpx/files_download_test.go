package httpx_test

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDownload(t *testing.T) {
	w := newWorld(t, nil)
	content := noise(600_000)
	path := w.upload(content, named(`attachment; filename="a b.csv"`), header("Content-Type", "text/csv; charset=utf-8; header=present"))
	a := w.do("GET", path, "").is(200, "")
	if a.body != content {
		t.Error("another content")
	}
	for name, want := range map[string]string{
		"Content-Type":        "text/csv; charset=utf-8",
		"Content-Length":      "600000",
		"Content-Disposition": `attachment; filename="a b.csv"; filename*=UTF-8''a%20b.csv`,
		"Repr-Digest":         sha256Digest(content),
		"Last-Modified":       "Sat, 21 Nov 2026 08:30:00 GMT",
	} {
		equal(t, a.header.Get(name), want, "%s = %q", name)
	}
	if opens := w.asked(); !slices.Equal(opens, [][2]int64{{0, 600_000}}) {
		t.Errorf("asked for %v", opens)
	}
	w.do("GET", path+"?x=1", "").is(400, "invalid_parameter")
	if opens := w.asked(); opens != nil {
		t.Errorf("asked for %v", opens)
	}
}

// Conditions and HEAD are answered without reading the content.
func TestDownloadConditions(t *testing.T) {
	w := newWorld(t, nil)
	path := w.upload("0123456789")
	tag := w.do("HEAD", path, "").is(200, "").header.Get("Etag")
	for _, row := range []struct {
		name, value string // the header's lines
		status      int
	}{
		{"If-None-Match", tag, 304},
		{"If-None-Match", `"x", W/` + tag, 304},
		{"If-None-Match", "\"x\"\n" + tag, 304},
		{"If-None-Match", "\"x\", \"y\"\n\"z\", W/" + tag + "\n\"a\"", 304},
		{"If-Modified-Since", "Sat, 21 Nov 2026 08:30:00 GMT", 304},
		{"If-Match", tag, 200},
		{"If-Match", "\"x\"\n" + tag, 200},
		{"If-Match", "\"x\"\n\"y\"\nW/" + tag, 412},
		{"If-Unmodified-Since", "Sat, 21 Nov 2026 08:29:59 GMT", 412},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			a := w.do(method, path, "", header(row.name, strings.Split(row.value, "\n")...)).is(row.status, "")
			a.what += " " + row.name + ": " + row.value
			if opens := w.asked(); (len(opens) > 0) != (a.status == 200 && method == "GET") {
				a.errorf("asked for %v", opens)
			}
			switch row.status {
			case 304:
				a.hasOnly("Cache-Control", "Etag", "X-Request-Id")
			case 412:
				a.hasOnly("Cache-Control", "Content-Length", "Content-Type", "X-Content-Type-Options", "X-Request-Id")
				if method == "GET" {
					a.is(412, "precondition_failed")
				}
			}
		}
	}
}

// hasOnly checks that the reply has these headers and no others.
func (a *answer) hasOnly(names ...string) {
	a.tb.Helper()
	var got []string
	for name := range a.header {
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		a.errorf("header %v, want %v", got, names)
	}
}

// G8: ranges, of a content longer than a block.
func TestRanges(t *testing.T) {
	content := noise(600_000)
	w := newWorld(t, nil)
	path := w.upload(content)
	tag := w.do("HEAD", path, "").header.Get("Etag")
	many := func(n int, one string) string { return "bytes=" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	for _, row := range []struct {
		ranges, condition string
		status            int
		from, to          int // of a single range
		opens             [][2]int64
	}{
		{"bytes=0-0", "", 206, 0, 1, [][2]int64{{0, 262_144}}},
		{"bytes=262143-262144", "", 206, 262_143, 262_145, [][2]int64{{0, 524_288}}},
		{"bytes=300000-300009", "", 206, 300_000, 300_010, [][2]int64{{262_144, 262_144}}},
		{"bytes=-5", "", 206, 599_995, 600_000, [][2]int64{{524_288, 75_712}}},
		{"bytes=0-9223372036854775808", "", 206, 0, 600_000, [][2]int64{{0, 600_000}}},
		{"bytes=-99999999999999999999", "", 206, 0, 600_000, [][2]int64{{0, 600_000}}},
		{"bytes=99999999999999999999-", "", 416, 0, 0, nil},
		{"bytes=10-19", tag, 206, 10, 20, [][2]int64{{0, 262_144}}},
		{"bytes=10-19", "Sat, 21 Nov 2026 08:30:00 GMT", 206, 10, 20, [][2]int64{{0, 262_144}}},
		{"bytes=10-19", `"x"`, 200, 0, 0, [][2]int64{{0, 600_000}}},
		{"bytes=600000-", "", 416, 0, 0, nil},
		{"bytes=-0", "", 416, 0, 0, nil},
		{"bytes=x", "", 416, 0, 0, nil},
		{"items=0-1", "", 200, 0, 0, [][2]int64{{0, 600_000}}},
		{"bytes=", "", 200, 0, 0, [][2]int64{{0, 600_000}}},
		{"bytes=,5-2", "", 416, 0, 0, nil},
		{"bytes=700000-,0-0,", "", 206, 0, 1, [][2]int64{{0, 262_144}}},
		{many(17, "0-0"), "", 200, 0, 0, [][2]int64{{0, 600_000}}},
		{many(3, "0-400000"), "", 200, 0, 0, [][2]int64{{0, 600_000}}}, // together longer than the file
	} {
		edits := []func(*http.Request){header("Range", row.ranges)}
		if row.condition != "" {
			edits = append(edits, header("If-Range", row.condition))
		}
		a := w.do("GET", path, "", edits...).is(row.status, "")
		a.what += fmt.Sprintf(" %.40s %s", row.ranges, row.condition)
		if opens := w.asked(); !slices.Equal(opens, row.opens) {
			a.errorf("asked for %v, want %v", opens, row.opens)
		}
		switch row.status {
		case 200:
			if a.body != content || a.header.Get("Content-Range") != "" {
				a.errorf("%d bytes, %v", len(a.body), a.header)
			}
		case 206:
			if want := fmt.Sprintf("bytes %d-%d/600000", row.from, row.to-1); a.header.Get("Content-Range") != want {
				a.errorf("Content-Range = %s, want %s", a.header.Get("Content-Range"), want)
			}
			if a.body != content[row.from:row.to] {
				a.errorf("another content")
			}
		case 416:
			a.is(416, "range_not_satisfiable")
			a.hasOnly("Cache-Control", "Content-Length", "Content-Range", "Content-Type", "X-Content-Type-Options", "X-Request-Id")
			if got := a.header.Get("Content-Range"); got != "bytes */600000" {
				a.errorf("Content-Range = %s", got)
			}
		}
	}
	head := w.do("HEAD", path, "", header("Range", "bytes=0-0")).is(200, "")
	equal(t, head.header.Get("Content-Length"), "600000", "Content-Length %s")
	w.do("GET", path, "", header("Range", "bytes=0-0", "bytes=1-1")).is(200, "")
}

func TestEmptyFile(t *testing.T) {
	w := newWorld(t, nil)
	path := w.upload("")
	for _, ranges := range []string{"", "bytes=0-", "bytes=-5", "bytes=0-0,1-1", "bytes=7-"} {
		a := w.do("GET", path, "", header("Range", ranges)).is(200, "")
		if a.body != "" || a.header.Get("Content-Length") != "0" {
			t.Errorf("%s: %v %q", ranges, a.header, a.body)
		}
	}
}

// G1, G2: file names come back in both forms.
func TestDownloadFileNames(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	for name, ascii := range map[string]string{
		"plain.txt": "plain.txt", "../../x": "x", `C:\x`: "x", "": "file", strings.Repeat("n", 4<<10) + ".txt": strings.Repeat("n", 251) + ".txt",
		"a\x00b": "ab", "a\r\nSet-Cookie:x=1": "aSet-Cookie:x=1",
		"\u202egpj.exe": "gpj.exe", "\xff\xfe.txt": "_.txt", `say "hi".txt`: "say _hi_.txt", "100%.txt": "100_.txt", "100%41.txt": "100_41.txt",
		"😀.txt": "_.txt", "naïve €.txt": "na_ve _.txt", "a;b='c'.txt": "a;b='c'.txt", "  x  ": "x", "(a)*&{b}.txt": "(a)*&{b}.txt",
	} {
		body := formOf(strings.Replace(filePart("x"), "a.txt", strings.ReplaceAll(name, `"`, "%22"), 1))
		edits := []func(*http.Request){asForm}
		if strings.ContainsAny(name, "\x00\r\n") { // these can't be in a header unescaped
			body, edits = "x", []func(*http.Request){named("attachment; filename*=UTF-8''" + url.QueryEscape(name))}
		}
		a := w.do("POST", list, body, edits...).is(201, "")
		shown := a.text("name")
		if shown == "" || !utf8.ValidString(shown) {
			t.Errorf("%q is kept as %q", name, shown)
		}
		value := w.do("GET", a.header.Get("Location"), "").is(200, "").header.Get("Content-Disposition")
		kind, params, err := mime.ParseMediaType(value)
		if err != nil || kind != "attachment" || params["filename"] != shown || len(params) != 1 {
			t.Errorf("%q: %s: %v %v", name, value, params, err)
		}
		if again := w.do("POST", list, "x", named(value)).is(201, "").text("name"); again != shown {
			t.Errorf("%q comes back as %q by %s", shown, again, value)
		}
		old, _, _ := strings.Cut(value, "; filename*=")
		if _, params, err = mime.ParseMediaType(old); err != nil || params["filename"] != ascii {
			t.Errorf("%q: %s: %v %v, want %q", name, old, params, err, ascii)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q: %q", name, value)
		}
	}
}

// G3: a file that a browser could run is never served with its own type.
func TestDownloadsCannotRunInBrowsers(t *testing.T) {
	w := newWorld(t, nil)
	list := w.uploads()
	const unknown = "application/octet-stream"
	for declared, want := range map[string]string{
		"text/html": unknown, "text/html; charset=utf-8": unknown, "TEXT/HTML": unknown, "application/xhtml+xml": unknown, "image/svg+xml": unknown,
		"image/SVG": unknown, "text/xml": unknown, "text/javascript": unknown, "multipart/related": unknown, "message/rfc822": unknown, "text/css": unknown,
		"application/wasm": unknown, "application/vnd.wap.xhtml+xml": unknown, "application/vnd.x.html": unknown, "image/x+xml": unknown,
		"video/x-html": unknown, "x": unknown, "text/html, image/png": unknown, "image/png\x00": unknown, "": unknown, "model/gltf+json": unknown,
		"image/png": "image/png", "image/gif; charset=utf-8": "image/gif", "audio/mpeg": "audio/mpeg", "video/mp4; codecs=avc1": "video/mp4",
		"font/woff2": "font/woff2", "text/plain": "text/plain", "Text/Plain; Charset=\"ISO-8859-1\"; format=flowed": "text/plain; charset=ISO-8859-1",
		"text/csv": "text/csv", "text/markdown": "text/markdown", "text/calendar": "text/calendar", "application/pdf": "application/pdf",
		"application/json; charset=utf-8": "application/json", "application/zip": "application/zip", "application/gzip": "application/gzip",
		"application/x-tar": "application/x-tar", "application/x-7z-compressed": "application/x-7z-compressed", "application/rtf": "application/rtf",
		"application/msword": "application/msword", "application/vnd.ms-excel": "application/vnd.ms-excel",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	} {
		a := w.do("POST", list, "<script>", header("Content-Type", declared)).is(201, "")
		if got := w.do("GET", a.header.Get("Location"), "").is(200, "").header["Content-Type"]; !slices.Equal(got, []string{want}) {
			t.Errorf("%q is given out as %q, want %q", declared, got, want)
		}
	}
}
