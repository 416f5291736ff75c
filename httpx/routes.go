package httpx

import (
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// A Route is one operation of the API. HEAD works wherever GET does and isn't listed as a route.
type Route struct {
	Name       string             // unique, camelCase, for example "getCampaign"
	Method     string             // for example "GET"
	Pattern    string             // the path relative to where the Handler is mounted, for example "/v1/campaigns/{uuid}"
	Permission formsvc.Permission // the permission that the key needs; "" means any valid key
	Public     bool               // whether it needs no key
}

// Routes returns all operations of the API.
func Routes() []Route {
	table := routes()
	list := make([]Route, len(table))
	for i := range table {
		list[i] = table[i].Route
	}
	return list
}

// A route is a Route with its handler. handle replies with [call.send], or returns an error.
type route struct {
	Route
	handle  func(*Handler, *call) error
	matched string // method and pattern, as in [http.Request.Pattern]
	list    bool   // whether it lists records
}

// Paths of single deliveries and files, which don't name the record that they belong to.
const (
	deliveries = "/v1/deliveries"
	files      = "/v1/files"
)

// routes returns the table of all operations.
func routes() []route {
	op := func(
		name, method, pattern string, permission formsvc.Permission, handle func(*Handler, *call) error,
	) route {
		return route{Route: Route{Name: name, Method: method, Pattern: pattern, Permission: permission}, handle: handle}
	}
	public := func(name, pattern string, handle func(*Handler, *call) error) route {
		return route{Route: Route{Name: name, Method: http.MethodGet, Pattern: pattern, Public: true}, handle: handle}
	}
	const (
		campaigns  = "/v1/campaigns"
		campaign   = campaigns + "/{uuid}"
		responses  = campaign + "/responses"
		response   = responses + "/{response_uuid}"
		uploads    = response + "/files"
		comments   = response + "/comments"
		signatures = response + "/signatures"
		webhooks   = "/v1/webhooks"
		webhook    = webhooks + "/{webhook_uuid}"
		delivery   = deliveries + "/{delivery_uuid}"
	)
	return []route{
		op("listCampaigns", http.MethodGet, campaigns, formsvc.CampaignsRead, (*Handler).listCampaigns),
		op("createCampaign", http.MethodPost, campaigns, formsvc.CampaignsWrite, (*Handler).createCampaign),
		op("getCampaign", http.MethodGet, campaign, formsvc.CampaignsRead, (*Handler).getCampaign),
		op("replaceCampaign", http.MethodPut, campaign, formsvc.CampaignsWrite, (*Handler).replaceCampaign),
		op("listResponses", http.MethodGet, responses, formsvc.ResponsesRead, (*Handler).listResponses),
		op("exportResponsesAsCsv", http.MethodGet, responses+".csv", formsvc.ResponsesRead, (*Handler).exportCSV),
		op("exportResponsesAsNdjson", http.MethodGet, responses+".ndjson", formsvc.ResponsesRead, (*Handler).exportNDJSON),
		op("createResponse", http.MethodPost, responses, formsvc.ResponsesWrite, (*Handler).createResponse),
		op("getResponse", http.MethodGet, response, formsvc.ResponsesRead, (*Handler).getResponse),
		op("updateResponse", http.MethodPatch, response, formsvc.ResponsesWrite, (*Handler).updateResponse),
		op("deleteResponse", http.MethodDelete, response, formsvc.ResponsesWrite, (*Handler).deleteResponse),
		op("listFiles", http.MethodGet, uploads, formsvc.FilesRead, (*Handler).listFiles),
		op("uploadFile", http.MethodPost, uploads, formsvc.ResponsesWrite, (*Handler).uploadFile),
		op("listComments", http.MethodGet, comments, formsvc.ResponsesRead, (*Handler).listComments),
		op("createComment", http.MethodPost, comments, formsvc.ResponsesWrite, (*Handler).createComment),
		op("listSignatures", http.MethodGet, signatures, formsvc.ResponsesRead, (*Handler).listSignatures),
		op("createSignature", http.MethodPost, signatures, formsvc.ResponsesWrite, (*Handler).createSignature),
		op("downloadFile", http.MethodGet, files+"/{file_uuid}", formsvc.FilesRead, (*Handler).downloadFile),
		op("listWebhooks", http.MethodGet, webhooks, formsvc.WebhooksRead, (*Handler).listWebhooks),
		op("createWebhook", http.MethodPost, webhooks, formsvc.WebhooksWrite, (*Handler).createWebhook),
		op("getWebhook", http.MethodGet, webhook, formsvc.WebhooksRead, (*Handler).getWebhook),
		op("replaceWebhook", http.MethodPut, webhook, formsvc.WebhooksWrite, (*Handler).replaceWebhook),
		op("deleteWebhook", http.MethodDelete, webhook, formsvc.WebhooksWrite, (*Handler).deleteWebhook),
		op("testWebhook", http.MethodPost, webhook+"/test", formsvc.WebhooksWrite, (*Handler).testWebhook),
		op("rotateWebhook", http.MethodPost, webhook+"/rotate", formsvc.WebhooksWrite, (*Handler).rotateWebhook),
		op("listDeliveries", http.MethodGet, webhook+"/deliveries", formsvc.WebhooksRead, (*Handler).listDeliveries),
		op("redeliverFailed", http.MethodPost, webhook+"/redeliver", formsvc.WebhooksWrite, (*Handler).redeliverFailed),
		op("getDelivery", http.MethodGet, delivery, formsvc.WebhooksRead, (*Handler).getDelivery),
		op("redeliver", http.MethodPost, delivery+"/redeliver", formsvc.WebhooksWrite, (*Handler).redeliver),
		op("listEvents", http.MethodGet, "/v1/events", formsvc.ResponsesRead, (*Handler).listEvents),
		op("getMe", http.MethodGet, "/v1/me", "", (*Handler).getMe),
		public("getRoot", "/", (*Handler).getRoot),
		public("getHealth", "/healthz", (*Handler).getHealth),
		public("getReadiness", "/readyz", (*Handler).getReadiness),
		public("getOpenAPI", openAPIPath, (*Handler).getOpenAPI),
		public("getDocs", docsPath, (*Handler).getDocs),
		public("getDocsFile", docsPath+"/{name}", (*Handler).getDocsFile),
	}
}

// A resource is the routes of one path.
type resource struct {
	segments []string // none at the root; "" is an identifier, anyName any segment
	routes   []route
	allow    string // the methods, as in the header Allow
}

// maxIDs is the limit of identifiers in a path.
const maxIDs = 2

// compile groups the table by path.
func compile(table []route) []resource {
	var list []resource
	index := make(map[string]int)
	for _, r := range table {
		i, ok := index[r.Pattern]
		if !ok {
			i = len(list)
			index[r.Pattern] = i
			list = append(list, resource{segments: segments(r.Pattern)})
		}
		resource := &list[i]
		r.matched = r.Method + " " + r.Pattern
		r.list = strings.HasPrefix(r.Name, "list")
		resource.routes = append(resource.routes, r)
		if resource.allow != "" {
			resource.allow += ", "
		}
		resource.allow += r.Method
		if r.Method == http.MethodGet {
			resource.allow += ", " + http.MethodHead
		}
	}
	return list
}

// anyName stands for a segment that the handler checks itself. None of our paths has an asterisk.
const anyName = "*"

func segments(pattern string) []string {
	if pattern == "/" {
		return nil
	}
	list := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for i, s := range list {
		switch {
		case s == "{name}":
			list[i] = anyName
		case strings.HasPrefix(s, "{"):
			list[i] = ""
		}
	}
	return list
}

// find returns the resource at the request's path and stores the identifiers in the call, or returns nil.
func (h *Handler) find(c *call) *resource {
	u := c.r.URL
	// net/url sets RawPath only for paths with escapes, and none of our paths needs any.
	if u.RawPath != "" && u.RawPath != u.Path {
		return nil
	}
	path := u.Path
	if path == "/" { // same as "", which StripPrefix leaves of a prefix without a slash
		path = ""
	}
	for i := range h.resources {
		if h.resources[i].match(path, &c.ids) {
			return &h.resources[i]
		}
	}
	return nil
}

// match reports whether the path is the resource's. It compares segment by segment, so that no path needs cleaning.
func (x *resource) match(path string, ids *[maxIDs]formsvc.ID) bool {
	found := 0
	for _, want := range x.segments {
		if path == "" || path[0] != '/' {
			return false
		}
		end := strings.IndexByte(path[1:], '/') + 1
		if end == 0 {
			end = len(path)
		}
		segment := path[1:end]
		path = path[end:]
		if want != "" {
			if segment != want && want != anyName {
				return false
			}
			continue
		}
		id, ok := formsvc.ParseID(segment)
		if !ok {
			return false
		}
		ids[found] = id
		found++
	}
	return path == ""
}

// route returns the route for the method, or nil.
func (x *resource) route(method string) *route {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range x.routes {
		if x.routes[i].Method == method {
			return &x.routes[i]
		}
	}
	return nil
}
