package keyring

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Parse reads keys from the text of a file or an environment variable. They are separated
// by commas, white space or line breaks; a "#" starts a comment that ends with the line.
// Each key is 32 bytes as 64 hex digits, or in base64 with the standard or the URL
// alphabet, padded or not. Its id is computed from the bytes, as by [Generate].
//
// It fails if there is no key or one is malformed. The error names the key's number and
// line, counting from 1, and contains nothing of the text.
func Parse(text string) ([]Key, error) {
	ring, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	return ring, nil
}

// parse is Parse without the package's name in errors.
func parse(text string) ([]Key, error) {
	var ring []Key
	line := 0
	for row := range strings.Lines(text) {
		line++
		row, _, _ = strings.Cut(row, "#")
		for word := range strings.FieldsFuncSeq(row, separates) {
			secret, err := parseSecret(word)
			if err != nil {
				return nil, fmt.Errorf("key %d, in line %d: %w", len(ring)+1, line, err)
			}
			ring = append(ring, Key{ID: keyID(&secret), Secret: secret})
		}
	}
	if len(ring) == 0 {
		return nil, errors.New("there is no key")
	}
	return ring, nil
}

func separates(r rune) bool { return r == ',' || unicode.IsSpace(r) }

// parseSecret tells hex from base64 by the length. It doesn't return the decoders'
// errors, because they quote the text.
func parseSecret(word string) (secret [32]byte, err error) {
	var b []byte
	switch len(word) {
	case 64:
		if b, err = hex.DecodeString(word); err != nil {
			return secret, errors.New("64 characters that are not all hexadecimal")
		}
	case 43, 44:
		if len(word) == 44 {
			word = strings.TrimSuffix(word, "=")
		}
		word = strings.NewReplacer("+", "-", "/", "_").Replace(word)
		b, err = encoding.DecodeString(word)
		if err != nil || len(b) != len(secret) {
			return secret, errors.New("not base64 of 32 bytes")
		}
	default:
		return secret, fmt.Errorf("%d bytes of text, neither 64 hexadecimal digits nor base64 of 32 bytes", len(word))
	}
	return [32]byte(b), nil
}
