package httpx

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// campaignTag returns the ETag of a campaign. It includes the number of responses, which is part of the campaign as
// clients get it.
func campaignTag(version, responses int64) string {
	var b [48]byte
	tag := append(b[:0], '"')
	tag = strconv.AppendInt(tag, version, 10)
	tag = append(tag, '-')
	tag = strconv.AppendInt(tag, responses, 10)
	return string(append(tag, '"'))
}

// webhookTag returns the ETag of a webhook. It includes whether a previous secret is active, since that ends without
// a change of the webhook.
func webhookTag(w *formsvc.Webhook) string {
	if w.PreviousUntil.IsZero() {
		return campaignTag(w.Version, 0)
	}
	return campaignTag(w.Version, 1)
}

// contentTag returns the ETag of a record without a version: a hash of its content.
func contentTag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// nextTag cuts the first entity tag off a list (RFC 9110 §8.8.3); opaque is the text between the quotes. ok is false if
// the list is malformed. At the end of the list all strings are empty.
func nextTag(list string) (opaque string, weak bool, rest string, found, ok bool) {
	list = strings.TrimLeft(list, " \t,")
	if list == "" {
		return "", false, "", false, true
	}
	list, weak = strings.CutPrefix(list, "W/")
	if list == "" || list[0] != '"' {
		return "", false, "", false, false
	}
	end := strings.IndexByte(list[1:], '"') + 1
	if end == 0 {
		return "", false, "", false, false
	}
	opaque, rest = list[1:end], strings.TrimLeft(list[end+1:], " \t")
	for i := range len(opaque) {
		if opaque[i] <= ' ' || opaque[i] == 0x7f {
			return "", false, "", false, false
		}
	}
	if rest != "" && rest[0] != ',' {
		return "", false, "", false, false
	}
	return opaque, weak, rest, true, true
}

// hasTag reports whether the client has the version named by tag (If-None-Match, by weak comparison). A malformed
// header matches nothing.
func (c *call) hasTag(tag string) bool {
	for _, list := range c.r.Header["If-None-Match"] {
		if strings.Trim(list, " \t") == "*" {
			return true
		}
		for {
			opaque, _, rest, found, ok := nextTag(list)
			if !ok || !found {
				break
			}
			if opaque == tag[1:len(tag)-1] {
				return true
			}
			list = rest
		}
	}
	return false
}

// A condition is the condition in If-Match.
type condition struct {
	given    bool    // whether it restricts the version
	versions []int64 // any of these matches
}

// noCondition refuses conditions on routes that would ignore them.
func (c *call) noCondition() error {
	for _, name := range [...]string{"If-Match", "If-None-Match"} {
		if len(c.r.Header[name]) > 0 {
			return badHeader(name + " can't be used with this request.")
		}
	}
	return nil
}

// ifMatch reads If-Match. counted is true for the tags of campaigns and webhooks, of which only the version part
// counts.
func (c *call) ifMatch(counted bool) (condition, error) {
	if len(c.r.Header["If-None-Match"]) > 0 {
		return condition{}, badHeader("If-None-Match is for GET and HEAD; send If-Match.")
	}
	var cond condition
	lists := c.r.Header["If-Match"]
	for _, list := range lists {
		if strings.Trim(list, " \t") == "*" {
			if len(lists) > 1 {
				return condition{}, badHeader("If-Match must be either * or a list of entity tags.")
			}
			return condition{}, nil // the record must exist, which the change checks anyway
		}
		for {
			opaque, weak, rest, found, ok := nextTag(list)
			if !ok {
				return condition{}, badHeader("If-Match must be * or a list of entity tags, each in double quotes.")
			}
			if !found {
				break
			}
			cond.given = true
			if version := tagVersion(opaque, counted); version > 0 && !weak {
				cond.versions = append(cond.versions, version)
			}
			list = rest
		}
	}
	if len(lists) > 0 && !cond.given {
		return condition{}, badHeader("If-Match must not be empty.")
	}
	return cond, nil
}

// tagVersion returns the version in one of our tags, or 0 for any other text.
func tagVersion(opaque string, counted bool) int64 {
	if counted {
		version, count, ok := strings.Cut(opaque, "-")
		if !ok || !canonical(count) {
			return 0
		}
		opaque = version
	}
	if !canonical(opaque) {
		return 0
	}
	version, err := strconv.ParseInt(opaque, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// canonical reports whether s is a number as we write it, so that only our own tags match.
func canonical(s string) bool {
	if s == "" || (s[0] == '0' && s != "0") {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// ifVersion returns the version that If-Match requires, or 0 for any: see ifMatch and version.
func (c *call) ifVersion(counted bool, current func() (int64, error)) (int64, error) {
	cond, err := c.ifMatch(counted)
	if err != nil {
		return 0, err
	}
	return cond.version(current)
}

// version returns the version that a change requires, or 0 for any. It calls current only if the header names several
// versions.
func (cond *condition) version(current func() (int64, error)) (int64, error) {
	if !cond.given {
		return 0, nil
	}
	if len(cond.versions) == 1 {
		return cond.versions[0], nil
	}
	version, err := current()
	if err != nil {
		return 0, err
	}
	if !slices.Contains(cond.versions, version) {
		return 0, formsvc.ErrStale
	}
	return version, nil
}

func badHeader(detail string) *problem {
	return &problem{status: http.StatusBadRequest, code: "invalid_header", detail: detail}
}
