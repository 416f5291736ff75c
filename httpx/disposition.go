package httpx

import (
	"mime"
	"net/url"
	"regexp"
	"slices"
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
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// servedType returns the Content-Type of a download. It is application/octet-stream unless the declared type is known to be
// harmless: a browser might run others, or render them as documents with scripts.
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
	switch major, minor, _ := strings.Cut(mediaType, "/"); major {
	case "image", "audio", "video", "font":
		return true
	case "text":
		return slices.Contains([]string{"plain", "csv", "markdown", "calendar"}, minor)
	case "application":
		return strings.HasPrefix(minor, "vnd.") ||
			slices.Contains([]string{"pdf", "json", "zip", "gzip", "x-tar", "x-7z-compressed", "msword", "rtf"}, minor)
	}
	return false
}
