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

// openAPIServer is where the document says at which address the API is: once, and as
// if it were mounted at the root of its host.
const openAPIServer = `"url": "/"`

// getOpenAPI answers with the description of the API, which names the address that
// clients are to use.
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
