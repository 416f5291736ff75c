package mount

import (
	"cmp"
	"net/url"
	"strings"
)

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
