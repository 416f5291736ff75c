package httpx

import "github.com/formsvc/toolkit/formsvc"

// commentInput decodes a comment; who wrote it is not the client's to say.
func (d *decoder) commentInput() (in formsvc.CommentInput, err error) {
	if !d.open() {
		return in, d.close()
	}
	body := false
	for d.member() {
		if string(d.name) != "body" {
			d.unknown()
			continue
		}
		body = true
		in.Body, _ = d.string()
	}
	d.require(body, "/body")
	return in, d.close()
}
