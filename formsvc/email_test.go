package formsvc_test

import (
	"strings"
	"testing"

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
