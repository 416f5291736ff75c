package httpx

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"regexp"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A digest is a hash that a content must match.
type digest struct {
	want []byte
	hash hash.Hash
}

// digests are the hashes that one content must match, by the algorithms that we know.
type digests map[string]digest

const digestSHA256 = "sha-256"

// digestForm is a member of Content-Digest: a byte sequence (RFC 9651), whose padding may be absent.
var digestForm = regexp.MustCompile(`^[ \t]*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/]*)=*:[ \t]*$`)

// contentDigests reads Content-Digest (RFC 9530 §2), a dictionary. It ignores unknown algorithms. If an algorithm occurs twice,
// the last one counts, as in every dictionary.
func contentDigests(lines []string) (digests, error) {
	all := strings.Join(lines, ",")
	if strings.Trim(all, " ") == "" {
		return nil, nil //nolint:nilnil // any content matches
	}
	list := make(digests)
	for member := range strings.SplitSeq(all, ",") {
		m := digestForm.FindStringSubmatch(member)
		if m == nil {
			return nil, badDigest()
		}
		want, err := base64.RawStdEncoding.DecodeString(m[2])
		if err != nil {
			return nil, badDigest()
		}
		var sum hash.Hash
		switch m[1] {
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
		list[m[1]] = digest{want, sum}
	}
	return list, nil
}

func badDigest() error {
	return badHeader("Content-Digest must be a dictionary of byte sequences, for example sha-256=:<base64>:.")
}

// read reads the next bytes of the content, and compares the hashes at its end. Another failure gets the error of failed.
func (list digests) read(from io.Reader, p []byte, failed func(error) error) (int, error) {
	n, err := from.Read(p)
	for _, d := range list {
		_, _ = d.hash.Write(p[:n]) // never fails
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, failed(err)
	}
	for _, d := range list {
		if err != nil && !bytes.Equal(d.hash.Sum(nil), d.want) {
			err = formsvc.ErrDigest
		}
	}
	return n, err
}

// reprDigest returns the value of Repr-Digest (RFC 9530 §3) for a file.
func reprDigest(f *formsvc.File) string {
	return digestSHA256 + "=:" + base64.StdEncoding.EncodeToString(f.SHA256[:]) + ":"
}
