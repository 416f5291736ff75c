package formsvc_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
)

// Text keeps its bytes: only what JSON can't hold is escaped.
func TestStringsKeepTheirBytes(t *testing.T) {
	b := (&formsvc.Response{Reference: "</é\u2028🌍\x7f\"\\/\n\r\t\b\x00"}).AppendJSON(nil)
	const want = `{"uuid":"","reference":"</é` + "\u2028🌍\x7f" + `\"\\/\n\r\t\b\u0000","status":"",` +
		`"user":{"email":"","firstName":"","lastName":""},"responses":{},"createdAt":null,"campaignUuid":"",` +
		`"updatedAt":null,"completedAt":null,"metadata":{}}`
	equal(t, string(b), want, "got %s")
}

// TestTimesAgreeWithPackageTime compares times on the wire with the standard library's formatting.
func TestTimesAgreeWithPackageTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
		at := time.UnixMicro(rapid.Int64Range(-70_000_000_000_000_000, 300_000_000_000_000_000).Draw(t, "micros")).In(zone)
		want := `"` + at.UTC().Format("2006-01-02T15:04:05.000Z") + `"`
		if at.IsZero() {
			want = "null"
		}
		if got := string(formsvc.AppendTime(nil, "", at)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
