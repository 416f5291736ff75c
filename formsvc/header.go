package formsvc

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/webhook"
)

// Limits of a webhook's custom headers (contract: up to 10).
const (
	maxHeaderName  = 100
	maxHeaderValue = 2048
)

// checkHeaders notes the faults of headers.
func checkHeaders(v *ValidationError, in []HeaderInput) {
	if len(in) > MaxHeaders {
		v.add("/headers", "too_many", "must be at most %d", MaxHeaders)
		return
	}
	seen := make(map[string]bool, len(in))
	for _, h := range in {
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case !tokenForm.MatchString(h.Name) || len(h.Name) > maxHeaderName:
			v.add("/headers", "invalid_header", "a name must be an HTTP token of 1 to %d characters", maxHeaderName)
		case webhook.IsReservedHeader(name):
			v.add(h.pointer(), "reserved_header", "is set by the service or belongs to the connection")
		case seen[name]:
			v.add(h.pointer(), "duplicate", "comes twice; upper and lower case are the same")
		case !h.Keep && (len(h.Value) > maxHeaderValue || !valueForm.MatchString(h.Value)):
			v.add(h.pointer(), "invalid_header",
				"a value must have 1 to %d printable ASCII characters, none of them a space at an end", maxHeaderValue)
		}
		seen[name] = true
	}
}

// headersOf returns headers in canonical form and order, with values from old where in says Keep.
// It notes where old has no value, and where old belongs to another origin than the headers now go to.
func (e *ValidationError) headersOf(in []HeaderInput, old []Header, moved bool) []Header {
	var headers []Header
	for _, h := range in {
		name := http.CanonicalHeaderKey(h.Name)
		if h.Keep {
			i := slices.IndexFunc(old, func(o Header) bool { return o.Name == name })
			if i < 0 {
				if !tokenForm.MatchString(h.Name) || webhook.IsReservedHeader(name) {
					continue // checkHeaders noted it already
				}
				e.add(h.pointer(), "required", "has no value that could be kept")
				continue
			}
			if moved { // the caller may not know the value, and must not receive it
				e.add(h.pointer(), "required", "needs the value of %s again, because the webhook's host, port or scheme changes", name)
				continue
			}
			h.Value = old[i].Value
		}
		headers = append(headers, Header{Name: name, Value: h.Value})
	}
	slices.SortFunc(headers, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return headers
}

// sameOrigin reports whether two URLs have the same scheme, host and port.
func sameOrigin(a, b string) bool {
	x, y := httpURL(a), httpURL(b)
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return x != nil && y != nil && x.Scheme == y.Scheme && strings.EqualFold(x.Hostname(), y.Hostname()) && port(x) == port(y)
}

func (h *HeaderInput) pointer() string {
	return "/headers/" + pointerEscape(h.Name)
}

// tokenForm is a token as RFC 9110, section 5.6.2, defines it; valueForm is a value of printable ASCII without a space at an end.
var (
	tokenForm = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")
	valueForm = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)
)

// String names the header without its value, which may be a token.
func (h Header) String() string { return fmt.Sprintf("%s: (hidden)", h.Name) }
