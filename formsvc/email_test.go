package formsvc_test

import (
	"net/mail"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
)

func TestValidEmail(t *testing.T) {
	local64, label63 := strings.Repeat("l", 64), strings.Repeat("d", 63)
	domain := strings.Join([]string{label63, label63, label63}, ".") // 191 bytes
	for _, s := range []string{
		"a@b", "ada@example.com", "ADA.Lovelace+tag@Example.CO.UK", "a_b-c.d@e-f.g", "1@2", "-@-", "x@xn--mnchen-3ya.example",
		"o'hara@example.com", "a!#$%&*/=?^`{|}~@b", "用户@例子.广告", "é@é.example", "ada@[192.0.2.1]",
		local64 + "@b", "a@" + domain + "." + strings.Repeat("d", 60), // 254 bytes
	} {
		if !formsvc.ValidEmail(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{
		"", "a", "@", "a@", "@b", "a@@b", "a@b@c", "a b@c", "a@b c", " a@b", "a@b ", "a@b\n", "\ta@b", "a@b\r\nBcc: c@d",
		".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c", "a,b@c", "a@b,c@d", "a;b@c", "a@b;", "a:b@c", "a@b:25", "(x)a@b", "a@b(x)",
		"Ada <ada@example.com>", "<ada@example.com>", "mailto:a@b", `"a b"@c`, `"a"@b`, `a\@b@c`, "a@b\x00", "a\x00@b", "\xff@b", "a@\xff",
		local64 + "l@b", "a@" + domain + "." + strings.Repeat("d", 61), strings.Repeat("@", 1_000_000),
	} {
		if formsvc.ValidEmail(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

// near generates addresses and texts that are almost addresses.
func near() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z0-9._+-]{0,8}@[a-zA-Z0-9._+-]{0,8}`),
		rapid.StringOfN(rapid.SampledFrom([]rune(`aZ09._+-@@"<>() ,:;[]\é`)), 0, 12, -1),
		rapid.String(),
	)
}

// simpleEmail never accepts what the grammar of RFC 5322 refuses, and every accepted text is a bare
// address.
func TestEmailAgreesWithTheGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := near().Draw(t, "address")
		a, err := mail.ParseAddress(s)
		bare := err == nil && a.Name == "" && a.Address == s
		if formsvc.SimpleEmail(s) && !bare {
			t.Fatalf("%q is simple, but ParseAddress says %v, %v", s, a, err)
		}
		if formsvc.ValidEmail(s) && !bare {
			t.Fatalf("%q is valid, but ParseAddress says %v, %v", s, a, err)
		}
	})
}

// simpleEmail accepts the most common addresses.
func TestSimpleEmailDecidesUsualAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-z0-9_+-]{1,8}(\.[a-zA-Z0-9]{1,8}){0,2}@[a-z0-9-]{1,8}(\.[a-zA-Z]{1,8}){0,3}`).Draw(t, "address")
		if !formsvc.SimpleEmail(s) || !formsvc.ValidEmail(s) {
			t.Fatalf("%q is refused", s)
		}
	})
}
