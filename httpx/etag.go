package httpx

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// campaignTag returns the ETag of a campaign. It includes the number of responses, which is part of the campaign as
// clients get it.
func campaignTag(version, responses int64) string {
	return `"` + strconv.FormatInt(version, 10) + "-" + strconv.FormatInt(responses, 10) + `"`
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

// An entityTag is one of a header.
type entityTag struct {
	opaque string // the text between the quotes
	weak   bool
}

// tagForm is the next entity tag of a list with the comma after it (RFC 9110 §8.8.3).
var tagForm = regexp.MustCompile(`^(W/)?"([^\x00- "\x7f]*)"[ \t]*(?:,|$)`)

// maxTags limits the tags of a header, which may be a megabyte long.
const maxTags = 1_000

// entityTags returns the tags of a header. star reports whether it is *. ok is false if a tag is malformed, or beyond maxTags; then
// the list ends before that.
func entityTags(lists []string) (tags []entityTag, star, ok bool) {
	const separators = " \t,"
	rest := strings.Trim(strings.Join(lists, ","), separators)
	if rest == "*" {
		return nil, true, true
	}
	for rest != "" {
		m := tagForm.FindStringSubmatch(rest)
		if m == nil || len(tags) == maxTags {
			return tags, false, false
		}
		tags = append(tags, entityTag{opaque: m[2], weak: m[1] != ""})
		rest = strings.TrimLeft(rest[len(m[0]):], separators)
	}
	return tags, false, true
}

// hasTag reports whether the client has the version named by tag (If-None-Match, by weak comparison). A malformed
// header matches nothing.
func (c *call) hasTag(tag string) bool {
	tags, star, _ := entityTags(c.r.Header["If-None-Match"])
	return star || slices.ContainsFunc(tags, func(t entityTag) bool { return t.opaque == tag[1:len(tag)-1] })
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

// ifVersion returns the version that If-Match requires, or 0 for any. counted is true for the tags of campaigns and webhooks, of
// which only the version part counts. It calls current only if the header names several versions.
func (c *call) ifVersion(counted bool, current func(*Handler, *call) (int64, error)) (int64, error) {
	if len(c.r.Header["If-None-Match"]) > 0 {
		return 0, badHeader("If-None-Match is for GET and HEAD; send If-Match.")
	}
	lists := c.r.Header["If-Match"]
	tags, star, ok := entityTags(lists)
	switch {
	case !ok:
		return 0, badHeader("If-Match must be * or a list of entity tags, each in double quotes.")
	case star || len(lists) == 0: // the record must exist, which the change checks anyway
		return 0, nil
	case len(tags) == 0:
		return 0, badHeader("If-Match must not be empty.")
	}
	var versions []int64
	for _, t := range tags {
		if version := tagVersion(t.opaque, counted); version > 0 && !t.weak {
			versions = append(versions, version)
		}
	}
	if len(versions) == 1 {
		return versions[0], nil
	}
	version, err := current(c.h, c)
	if err == nil && !slices.Contains(versions, version) {
		err = formsvc.ErrStale
	}
	return version, err
}

// ownTag is the text of one of our tags of records: numbers as we write them.
var ownTag = regexp.MustCompile(`^([1-9][0-9]*)(-(?:0|[1-9][0-9]*))?$`)

// tagVersion returns the version in one of our tags, or 0 for any other text.
func tagVersion(opaque string, counted bool) int64 {
	m := ownTag.FindStringSubmatch(opaque)
	if m == nil || counted != (m[2] != "") {
		return 0
	}
	version, _ := strconv.ParseInt(m[1], 10, 64) // beyond all versions if it is out of range
	return version
}

// sendRecord replies with the record in c.out, whose ETag is tag, or with 304 to a GET of a client that has it.
func (c *call) sendRecord(tag string) error {
	c.setHeader("Etag", tag)
	if c.route.Method != http.MethodGet {
		return c.send(http.StatusOK, noStore)
	}
	if c.hasTag(tag) {
		return c.sendNotModified(revalidate)
	}
	return c.send(http.StatusOK, revalidate)
}

func badHeader(detail string) *wire.Problem {
	return wire.BadRequest("invalid_header", detail)
}
