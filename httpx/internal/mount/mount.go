// Package mount finds the part of a path that is below the place where a handler is mounted.
package mount

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// Below returns the request with the path below the handler's prefix, which begins with a slash. [http.StripPrefix] may have removed the
// prefix, with or without the slash after it. Mount of chi and [http.ServeMux] keep the path whole; then their pattern tells the prefix,
// unless known has a pattern for the whole path. known may be nil.
func Below(r *http.Request, known *http.ServeMux) *http.Request {
	whole := r.URL.EscapedPath()
	rest := whole
	if asked(r) == whole && r.Pattern != "" && !has(known, r) {
		rest = whole[prefixLen(r, whole):]
	}
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	if rest == whole {
		return r
	}
	below, u := r.WithContext(r.Context()), *r.URL
	u.RawPath = rest
	u.Path, _ = url.PathUnescape(rest) // an end of a valid path is valid
	below.URL = &u
	return below
}

// asked returns the path as the client sent it.
func asked(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok && path[0] != '/' { // the absolute form, which clients send to proxies
		path = rest[max(strings.IndexByte(rest, '/'), 0):]
	}
	return path
}

// has reports whether a pattern of the mux, but not the one for all other paths, takes the request.
func has(mux *http.ServeMux, r *http.Request) bool {
	if mux == nil {
		return false
	}
	_, pattern := mux.Handler(r)
	return pattern != "" && pattern != "/"
}

// prefixLen returns the length of the prefix that r.Pattern has in the path.
func prefixLen(r *http.Request, path string) int {
	_, pattern, _ := strings.Cut(r.Pattern, "/") // without method and host
	slashes := strings.Count(pattern, "/")       // those of the prefix
	switch end := pattern[strings.LastIndexByte(pattern, '/')+1:]; {
	case pattern == "", strings.HasSuffix(end, "}") && !strings.HasSuffix(end, "...}"):
		return 0
	case end != "" && end != "*" && !strings.HasSuffix(end, "...}"): // the prefix without its slash, or in chi also with it
		slashes++
	}
	for i := range len(path) {
		if path[i] == '/' {
			if slashes == 0 {
				return i
			}
			slashes--
		}
	}
	return len(path)
}

// Prefix returns the path that the handler is mounted under, as the client knows it. r is from [Below]. If a proxy or middleware changed
// the path, the prefix is unknown, and so is one that would name another host: then it is "".
func Prefix(r *http.Request) string {
	path := asked(r)
	prefix, ok := strings.CutSuffix(path, r.URL.EscapedPath())
	if !ok && r.URL.Path == "/" { // the prefix was requested without a slash
		prefix, ok = path, true
	}
	if !ok || strings.HasPrefix(path, "//") {
		return ""
	}
	return prefix
}

// Plain reports whether a [http.ServeMux] takes the path as it is. It would redirect others, to an address without the prefix.
func Plain(r *http.Request) bool {
	clean := path.Clean(r.URL.Path)
	return (clean == r.URL.Path || clean+"/" == r.URL.Path) && !strings.HasPrefix(r.URL.Path, "//")
}

// Address parses a public address, or a path that begins with a slash. Only "/" keeps the slash at its end. Address reports whether s is one and has no
// query, fragment or user.
func Address(s string) (u *url.URL, ok bool) {
	u, err := url.Parse(cmp.Or(strings.TrimRight(s, "/"), "/"))
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, false
	}
	return u, Public(u) || u.Scheme == "" && u.Host == "" && strings.HasPrefix(s, "/")
}

// Public reports whether an address has a scheme and a host.
func Public(u *url.URL) bool { return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" }

// Whole returns a path at the host of a public address, or another public address as it is, without the slash at its end.
func Whole(u, host *url.URL) string {
	return strings.TrimRight(host.ResolveReference(u).String(), "/")
}
