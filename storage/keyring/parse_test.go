package keyring_test

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/storage/keyring"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const (
		hexed   = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
		based   = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
		std     = "+//7//v/+//7//v/+//7//v/+//7//v/+//7//v/+/8="
		url     = "-__7__v_-__7__v_-__7__v_-__7__v_-__7__v_-_8="
		other   = "fbfffbfffbfffbfffbfffbfffbfffbfffbfffbfffbfffbfffbfffbfffbfffbff"
		padding = "="
	)
	one, two := []string{hexed}, []string{hexed, other}
	for _, c := range []struct {
		label, text string
		want        []string // in hexadecimal
		fault       string   // part of the error
	}{
		{"hex", hexed, one, ""},
		{"upper case", strings.ToUpper(hexed), one, ""},
		{"base64", based, one, ""},
		{"base64 unpadded", strings.TrimSuffix(based, padding), one, ""},
		{"standard", std, two[1:], ""},
		{"standard unpadded", strings.TrimSuffix(std, padding), two[1:], ""},
		{"url", url, two[1:], ""},
		{"url unpadded", strings.TrimSuffix(url, padding), two[1:], ""},
		{"comma", hexed + "," + url, two, ""},
		{"commas and spaces", " ,\t" + hexed + " , ,\u00a0" + url + ",", two, ""},
		{"lines", "\r\n" + hexed + "\r\n" + url + "\r\n", two, ""},
		{"comments", "# head, " + url + "\n" + hexed + "# first\n#\n" + std + " # " + hexed, two, ""},
		{"the same twice", hexed + "," + based, []string{hexed, hexed}, ""}, // New rejects them

		{"empty", "", nil, "there is no key"},
		{"white space", " \n,\n", nil, "there is no key"},
		{"comment only", "#" + hexed, nil, "there is no key"},
		{"short", hexed[1:], nil, "key 1, in line 1: 63 bytes of text"},
		{"long", hexed + "0", nil, "key 1, in line 1: 65 bytes of text"},
		{"second", hexed + ",x", nil, "key 2, in line 1: 1 bytes of text"},
		{"third line", "#\n" + hexed + "\nx", nil, "key 2, in line 3: 1 bytes of text"},
		{"not hex", hexed[:63] + "g", nil, "key 1, in line 1: 64 characters that are not all hexadecimal"},
		{"not base64", "?" + based[1:], nil, "key 1, in line 1: not base64 of 32 bytes"},
		{"padding within", based[:20] + "=" + based[20:42], nil, "key 1, in line 1: not base64 of 32 bytes"},
		{"33 bytes", based[:43] + "A", nil, "key 1, in line 1: not base64 of 32 bytes"},
		{"unused bits", based[:42] + "B", nil, "key 1, in line 1: not base64 of 32 bytes"},
		{"quoted", `"` + hexed + `"`, nil, "key 1, in line 1: 66 bytes of text"},
	} {
		t.Run(c.label, func(t *testing.T) {
			t.Parallel()
			keys, err := keyring.Parse(c.text)
			var got []string
			for _, key := range keys {
				got = append(got, hex.EncodeToString(key.Secret[:]))
				if id := newRing(t, keyring.Key{Secret: key.Secret}).Primary(); key.ID != id {
					t.Errorf("the id is %q, not %q", key.ID, id)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || err.Error() != "keyring: "+c.fault) && !prefixed(err, c.fault) {
				t.Errorf("got the error %v, want %q", err, c.fault)
			}
		})
	}
}

func prefixed(err error, fault string) bool {
	return err != nil && strings.HasPrefix(err.Error(), "keyring: "+fault)
}

func FuzzParse(f *testing.F) {
	f.Add("# comment\n0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20,x")
	f.Add("AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA= AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyB")
	f.Add("\ufeff\xff,=\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := keyring.Parse(text)
		if (err == nil) == (len(keys) == 0) {
			t.Fatalf("%d keys and %v", len(keys), err)
		}
		if err != nil {
			for word := range strings.FieldsSeq(text) {
				if len(word) > 12 && strings.Contains(err.Error(), word) {
					t.Fatalf("the error shows the text: %v", err)
				}
			}
			return
		}
		again, err := keyring.Parse(keyring.Format(keys))
		if err != nil || !slices.Equal(again, keys) {
			t.Fatalf("written and read again the keys are %v, not %v: %v", again, keys, err)
		}
		for _, key := range keys {
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
				if same, err := keyring.Parse(enc.EncodeToString(key.Secret[:])); err != nil || same[0] != key {
					t.Fatalf("in base64 it is %v, not %v: %v", same, key, err)
				}
			}
		}
	})
}

func FuzzOpen(f *testing.F) {
	k := newRing(f, fixedKey())
	// A constant, since every process that fuzzes needs the same value.
	const genuine = "s1.f8399b52.oKGio6SlpqeoqaqryrReFJjBdezMhaSr7cyjvtp2zwzZeg"
	wantOpen(f, k, "secret", genuine, "row")
	f.Add(genuine, "row")
	f.Add(genuine, "wor")
	f.Add("s1.f8399b52.", "row")
	f.Add("p1.plain", "row")
	f.Fuzz(func(t *testing.T, value, context string) {
		id, idErr := keyring.KeyID(value)
		plain, err := k.Open(value, context)
		if err != nil {
			if plain != "" {
				t.Fatalf("%q opens as %q with the error %v", value, plain, err)
			}
			return
		}
		if idErr != nil || id != "" && id != k.Primary() {
			t.Fatalf("%q opens, but its key is %q, %v", value, id, idErr)
		}
		if value != "p1."+plain && (value != genuine || context != "row") {
			t.Fatalf("%q was not made by Seal for %q, and opens", value, context)
		}
		wantOpen(t, k, plain, k.Seal(plain, context), context)
	})
}
