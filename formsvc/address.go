package formsvc

import (
	"fmt"
	"net/mail"
	"strings"
)

// validEmail reports whether s is a [bareEmail] without characters that can't be seen.
func validEmail(s string) bool {
	return bareEmail(s) && !strings.ContainsFunc(s, func(r rune) bool { return (r <= ' ' || r > '~') && !visible(string(r)) })
}

// checkDomains refuses addresses of a visitor whose domain has no dot: a mail to them reaches nobody. Other clients of the API may
// be in a network where such names exist.
func (e *ValidationError) checkDomains(in *ResponseInput, modules []Module) {
	check := func(pointer, address string) {
		if domain := strings.Trim(address[strings.LastIndexByte(address, '@')+1:], "."); !strings.Contains(domain, ".") && validEmail(address) {
			e.add(pointer, "invalid_email", "must have a domain with a dot, such as example.com")
		}
	}
	check("/user/email", in.User.Email)
	for i := range modules {
		for _, a := range in.Answers {
			if modules[i].Type != EmailModule || modules[i].Name != a.Name {
				continue
			}
			for n, value := range a.Value {
				check(fmt.Sprintf("/responses/%s/value/%d", pointerEscape(a.Name), n), value)
			}
		}
	}
}

// bareEmail reports whether s is a bare address, local@domain, of at most 254
// bytes (RFC 5321 §4.5.3.1.3 less the angle brackets).
func bareEmail(s string) bool {
	if len(s) > 254 || strings.ContainsAny(s, "<>\r\n") || CheckText(s) != nil {
		return false
	}
	a, err := mail.ParseAddress(s)
	if err != nil || a.Name != "" || a.Address != s {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	return at > 0 && at <= 64 && at < len(s)-1
}
