package httpx

import (
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

func (h *Handler) listComments(c *call) error {
	return serveList(c, pageParams, func(q *listQuery) (formsvc.Page[formsvc.Comment], error) {
		return h.svc.Comments.List(c.ctx(), c.responseKey(), q.page)
	}, func(b []byte, x *formsvc.Comment) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

// author returns the author of a comment. The name of a host application's principal is cut to the limit for authors,
// since the client can't change it.
func author(who *formsvc.Principal) string {
	if name := []rune(who.KeyName); len(name) > formsvc.MaxAuthor {
		return string(name[:formsvc.MaxAuthor])
	}
	return who.KeyName
}

// createComment adds a comment by the key's owner. The reply has no Location, since a comment has no address.
func (h *Handler) createComment(c *call) error {
	in, err := c.body.CommentInput()
	if err != nil {
		return err
	}
	in.Author = author(c.who)
	comment, err := once(c, func(svc *formsvc.Service) (formsvc.Comment, error) {
		return svc.Comments.Create(c.ctx(), c.responseKey(), in)
	})
	if err != nil {
		return err
	}
	c.out = comment.AppendJSON(c.out)
	return c.sendDone(http.StatusCreated)
}
