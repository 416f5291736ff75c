package webhook_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook"
)

// The expected values come from OpenSSL 3.0.19, with the command next to each.
func TestSignAgreesWithOpenSSL(t *testing.T) {
	tests := []struct {
		name, secret string
		body         []byte
		want         string
	}{
		{
			// printf '%s' '{"event":"response.created"}' | openssl dgst -sha256 -hmac 'whsec_5f1c0b9e4d7a42d3'
			name:   "json",
			secret: "whsec_5f1c0b9e4d7a42d3",
			body:   []byte(`{"event":"response.created"}`),
			want:   "0164b1b043cb1a9b45ffd3362637c1dca8113acfcaf6e78ce9ea8419fc656df2",
		},
		{
			// printf '' | openssl dgst -sha256 -hmac 'a secret with spaces'
			name:   "empty body",
			secret: "a secret with spaces",
			want:   "b9e72a169083c460aece5ccf0ede84e6c8fb276ee3a0363318a6e5c5883e0e05",
		},
		{
			// printf '%s' 'Été – 夏 🌻' | openssl dgst -sha256 -hmac 'clé-秘密-🔑'
			name:   "unicode",
			secret: "clé-秘密-🔑",
			body:   []byte("Été – 夏 🌻"),
			want:   "b12f69dee3213a24cffbe656de55c3dc71962b2290d0f33d38bce258c309e445",
		},
		{
			// head -c 1048576 /dev/zero | openssl dgst -sha256 -hmac k
			name:   "1 MiB of zeros",
			secret: "k",
			body:   make([]byte, 1<<20),
			want:   "c761c99d81a27a5ae966e60c5c39a7d34c5d9275a049427925518d8b41a41271",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := webhook.Sign([]byte(tt.secret), tt.body); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// The test cases of RFC 4231, section 4. Case 5 has a truncated result, which
// this signature never has.
func TestSignAgreesWithRFC4231(t *testing.T) {
	tests := []struct {
		name string
		key  []byte
		data string
		want string
	}{
		{"case 1", bytes.Repeat([]byte{0x0b}, 20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"case 2", []byte("Jefe"), "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{"case 3", bytes.Repeat([]byte{0xaa}, 20), strings.Repeat("\xdd", 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{"case 6", bytes.Repeat([]byte{0xaa}, 131), "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
		{"case 7", bytes.Repeat([]byte{0xaa}, 131), "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.", "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := webhook.Sign(tt.key, []byte(tt.data)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
