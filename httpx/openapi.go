package httpx

import (
	_ "embed"
	"net/http"
	"strings"
)

const openAPIPath = "/openapi.json"

// openAPI is openapi.yaml as JSON.
//
//go:generate go test -run ^TestOpenAPIJSON$ -update .
//go:embed openapi.json
var openAPI string

// openAPIServer is the server's address in the document: it occurs once, and stands for the root of a host.
const openAPIServer = `"url": "/"`

// getOpenAPI serves the OpenAPI document, with the address that clients are to use.
func (h *Handler) getOpenAPI(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	server := h.baseURL
	if server == "" {
		server = strings.TrimSuffix(askedPath(c.r), openAPIPath)
	}
	if server == "" {
		server = "/"
	}
	before, after, _ := strings.Cut(openAPI, openAPIServer)
	b := append(c.out, before...)
	b = appendString(append(b, `"url": `...), server)
	c.out = append(b, after...)
	tag := contentTag(c.out)
	c.setHeader("Etag", tag)
	if c.hasTag(tag) {
		return c.sendNotModified()
	}
	return c.send(http.StatusOK, revalidate)
}
