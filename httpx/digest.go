package httpx

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A digest is a hash that a content must match.
type digest struct {
	algorithm string
	want      []byte
	hash      hash.Hash
}

// digests are the hashes that one content must match, of the algorithms that we know.
type digests []digest

const digestSHA256 = "sha-256"

// contentDigests reads Content-Digest (RFC 9530 §2), a dictionary of byte sequences (RFC 9651). It ignores unknown
// algorithms. If an algorithm occurs twice, the last one counts, as in every dictionary.
func contentDigests(lines []string) (digests, error) {
	var list digests
	rest := strings.Trim(strings.Join(lines, ","), " ")
	for rest != "" {
		member, more, another := strings.Cut(rest, ",")
		if rest = strings.TrimLeft(more, " \t"); another && rest == "" {
			return nil, badDigest()
		}
		algorithm, want, ok := parseDigest(strings.TrimRight(member, " \t"))
		if !ok {
			return nil, badDigest()
		}
		var sum hash.Hash
		switch algorithm {
		case digestSHA256:
			sum = sha256.New()
		case "sha-512":
			sum = sha512.New()
		default:
			continue
		}
		if len(want) != sum.Size() {
			return nil, badDigest()
		}
		list = append(list.without(algorithm), digest{algorithm, want, sum})
	}
	return list, nil
}

func badDigest() error {
	return badHeader("Content-Digest must be a dictionary of byte sequences, for example sha-256=:<base64>:.")
}

// parseDigest reads one member of the dictionary.
func parseDigest(member string) (algorithm string, want []byte, ok bool) {
	algorithm, value, _ := strings.Cut(member, "=")
	if algorithm == "" || strings.Trim(algorithm, "abcdefghijklmnopqrstuvwxyz0123456789_-.*") != "" ||
		strings.IndexByte("0123456789_-.", algorithm[0]) >= 0 {
		return "", nil, false
	}
	if len(value) < 2 || value[0] != ':' || value[len(value)-1] != ':' {
		return "", nil, false
	}
	value = strings.TrimRight(value[1:len(value)-1], "=") // padding may be absent
	if strings.ContainsAny(value, "\r\n") {               // the decoder would skip these
		return "", nil, false
	}
	want, err := base64.RawStdEncoding.DecodeString(value)
	return algorithm, want, err == nil
}

// without returns the list without the algorithm.
func (list digests) without(algorithm string) digests {
	for i := range list {
		if list[i].algorithm == algorithm {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

// sha256 returns the SHA-256 that the content must match, or nil for any.
func (list digests) sha256() *[sha256.Size]byte {
	for i := range list {
		if list[i].algorithm == digestSHA256 {
			return (*[sha256.Size]byte)(list[i].want)
		}
	}
	return nil
}

// add hashes the next bytes of the content.
func (list digests) add(p []byte) {
	for i := range list {
		_, _ = list[i].hash.Write(p) // never fails
	}
}

// check compares the hashes. Call it at the end of the content.
func (list digests) check() error {
	for i := range list {
		if !bytes.Equal(list[i].hash.Sum(nil), list[i].want) {
			return formsvc.ErrDigest
		}
	}
	return nil
}

// reprDigest returns the value of Repr-Digest (RFC 9530 §3) for a file.
func reprDigest(f *formsvc.File) string {
	return digestSHA256 + "=:" + base64.StdEncoding.EncodeToString(f.SHA256[:]) + ":"
}
