package httpx

import (
	"mime"
	"regexp"
	"strings"
)

// extendedName is the parameter with an escaped name, in which encodeURIComponent of JavaScript leaves parentheses unescaped.
var extendedName = regexp.MustCompile(`(?i)filename\*\s*=[^;]*`)

// parseDisposition returns the parameters of a Content-Disposition (RFC 6266) of that kind. wrong describes the error, or is "".
func parseDisposition(header, kind string) (parameters map[string]string, wrong string) {
	header = extendedName.ReplaceAllStringFunc(header, strings.NewReplacer("(", "%28", ")", "%29").Replace)
	got, parameters, err := mime.ParseMediaType(header)
	_, named := parameters["filename"]
	switch {
	case got != kind && got != "":
		return nil, "must be " + kind
	case err != nil:
		return nil, `can't be read; write a name as filename="…", or as filename*=UTF-8'' with the name escaped as %XX`
	case !named && extendedName.MatchString(header):
		return nil, "has a filename* that is not UTF-8'' and a name escaped as %XX"
	}
	return parameters, ""
}

// disposition returns the Content-Disposition of a download (RFC 6266). It has the name twice: in ASCII for old
// clients, and unchanged.
func disposition(name string) string {
	ascii := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	b := []byte(`attachment; filename="` + ascii + `"; filename*=UTF-8''`)
	for i := range len(name) {
		b = appendExtended(b, name[i])
	}
	return string(b)
}

// appendExtended appends one byte of a value in the extended notation (RFC 8187
// §3.2.1).
func appendExtended(b []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("!#$&+-.^_`|~", c) >= 0:
		return append(b, c)
	}
	return append(b, '%', hex[c>>4], hex[c&15])
}

// servedType returns the Content-Type under which a file of a declared type is
// given out. What a browser might run, or render as a document with scripts, and
// whatever is not known to be harmless is application/octet-stream.
func servedType(declared string) string {
	mediaType, params, err := mime.ParseMediaType(declared)
	if err != nil || !harmless(mediaType) {
		return "application/octet-stream"
	}
	charset := params["charset"]
	if charset == "" || !strings.HasPrefix(mediaType, "text/") {
		return mediaType
	}
	return mime.FormatMediaType(mediaType, map[string]string{"charset": charset})
}

func harmless(mediaType string) bool {
	for _, part := range [...]string{"html", "+xml", "svg", "script"} {
		if strings.Contains(mediaType, part) {
			return false
		}
	}
	major, _, _ := strings.Cut(mediaType, "/")
	switch major {
	case "image", "audio", "video", "font":
		return true
	}
	switch mediaType {
	case "text/plain", "text/csv", "text/markdown", "text/calendar",
		"application/pdf", "application/json", "application/zip", "application/gzip", "application/x-tar",
		"application/x-7z-compressed", "application/msword", "application/rtf":
		return true
	}
	return strings.HasPrefix(mediaType, "application/vnd.")
}
