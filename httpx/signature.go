package httpx

import (
	"net/http"

	"github.com/formsvc/toolkit/formsvc"
)

func (h *Handler) listSignatures(c *call) error {
	return serveList(c, pageParams, func(q *listQuery) (formsvc.Page[formsvc.Signature], error) {
		return h.svc.Signatures.List(c.ctx(), c.responseKey(), q.page)
	}, func(b []byte, x *formsvc.Signature) ([]byte, formsvc.ID) {
		return x.AppendJSON(b), x.ID
	})
}

// createSignature records a signature. The reply has no Location, since a signature has no address.
func (h *Handler) createSignature(c *call) error {
	in, err := c.body.SignatureInput()
	if err != nil {
		return err
	}
	sig, err := once(c, func(svc *formsvc.Service) (formsvc.Signature, error) {
		return svc.Signatures.Create(c.ctx(), c.responseKey(), in)
	})
	if err != nil {
		return c.body.WithoutPerson(err)
	}
	c.out = sig.AppendJSON(c.out)
	return c.sendDone(http.StatusCreated)
}
