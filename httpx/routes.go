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
	Also       formsvc.Permission // a second one that it needs; "" means none
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

// A route is a Route with its handler.
type route struct {
	Route
	read    handler // reads the query and the body; nil if handle does
	handle  handler // decodes, calls the service and sends
	matched string  // method and pattern, as in [http.Request.Pattern]
	list    bool    // whether it lists records
}

// Paths of single deliveries and files, which don't name the record that they belong to.
const (
	deliveries = "/v1/deliveries"
	files      = "/v1/files"
)

// routes returns the table of all operations.
func routes() []route {
	op := func(name, method, pattern string, permission formsvc.Permission, handle handler) route {
		r := route{Route: Route{Name: name, Method: method, Pattern: pattern, Permission: permission}, handle: handle}
		switch r.list = strings.HasPrefix(name, "list"); {
		case r.list:
		case method == http.MethodGet || method == http.MethodDelete:
			r.read = (*Handler).noQuery
		default:
			r.read = (*Handler).readJSON
		}
		return r
	}
	optional := func(r route) route { r.read = (*Handler).readOptionalJSON; return r }
	own := func(r route) route { r.read = nil; return r }
	showing := func(r route) route { r.Also = formsvc.ResponsesRead; return r } // a webhook shows responses to its receiver
	withFiles := func(r route) route { r.Also = formsvc.FilesRead; return r }
	unconditional := func(r route) route {
		read := r.read
		r.read = func(h *Handler, c *call) error {
			if err := c.noCondition(); err != nil {
				return err
			}
			return read(h, c)
		}
		return r
	}
	public := func(name, pattern string, handle handler) route {
		r := op(name, http.MethodGet, pattern, "", handle)
		r.Public = true
		return r
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
		op("deleteCampaign", http.MethodDelete, campaign, formsvc.CampaignsWrite, (*Handler).deleteCampaign),
		unconditional(optional(op("rotateForm", http.MethodPost, campaign+"/form/rotate", formsvc.CampaignsWrite, (*Handler).rotateForm))),
		op("listResponses", http.MethodGet, responses, formsvc.ResponsesRead, (*Handler).listResponses),
		own(op("exportResponsesAsCsv", http.MethodGet, responses+".csv", formsvc.ResponsesRead, (*Handler).exportCSV)),
		own(op("exportResponsesAsNdjson", http.MethodGet, responses+".ndjson", formsvc.ResponsesRead, (*Handler).exportNDJSON)),
		own(op("exportResponsesAsXlsx", http.MethodGet, responses+".xlsx", formsvc.ResponsesRead, (*Handler).exportXLSX)),
		withFiles(own(op("exportResponsesAsZip", http.MethodGet, responses+".zip", formsvc.ResponsesRead, (*Handler).exportZIP))),
		op("createResponse", http.MethodPost, responses, formsvc.ResponsesWrite, (*Handler).createResponse),
		op("getResponse", http.MethodGet, response, formsvc.ResponsesRead, (*Handler).getResponse),
		op("updateResponse", http.MethodPatch, response, formsvc.ResponsesWrite, (*Handler).updateResponse),
		op("deleteResponse", http.MethodDelete, response, formsvc.ResponsesWrite, (*Handler).deleteResponse),
		op("listFiles", http.MethodGet, uploads, formsvc.FilesRead, (*Handler).listFiles),
		own(op("uploadFile", http.MethodPost, uploads, formsvc.ResponsesWrite, (*Handler).uploadFile)),
		op("listComments", http.MethodGet, comments, formsvc.ResponsesRead, (*Handler).listComments),
		op("createComment", http.MethodPost, comments, formsvc.ResponsesWrite, (*Handler).createComment),
		op("listSignatures", http.MethodGet, signatures, formsvc.ResponsesRead, (*Handler).listSignatures),
		op("createSignature", http.MethodPost, signatures, formsvc.ResponsesWrite, (*Handler).createSignature),
		op("downloadFile", http.MethodGet, files+"/{file_uuid}", formsvc.FilesRead, (*Handler).downloadFile),
		op("listWebhooks", http.MethodGet, webhooks, formsvc.WebhooksRead, (*Handler).listWebhooks),
		showing(op("createWebhook", http.MethodPost, webhooks, formsvc.WebhooksWrite, (*Handler).createWebhook)),
		op("getWebhook", http.MethodGet, webhook, formsvc.WebhooksRead, (*Handler).getWebhook),
		showing(op("replaceWebhook", http.MethodPut, webhook, formsvc.WebhooksWrite, (*Handler).replaceWebhook)),
		unconditional(op("deleteWebhook", http.MethodDelete, webhook, formsvc.WebhooksWrite, (*Handler).deleteWebhook)),
		optional(op("testWebhook", http.MethodPost, webhook+"/test", formsvc.WebhooksWrite, (*Handler).testWebhook)),
		unconditional(optional(op("rotateWebhook", http.MethodPost, webhook+"/rotate", formsvc.WebhooksWrite, (*Handler).rotateWebhook))),
		op("listDeliveries", http.MethodGet, webhook+"/deliveries", formsvc.WebhooksRead, (*Handler).listDeliveries),
		op("redeliverFailed", http.MethodPost, webhook+"/redeliver", formsvc.WebhooksWrite, (*Handler).redeliverFailed),
		op("getDelivery", http.MethodGet, delivery, formsvc.WebhooksRead, (*Handler).getDelivery),
		optional(op("redeliver", http.MethodPost, delivery+"/redeliver", formsvc.WebhooksWrite, (*Handler).redeliver)),
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
	ids    []string // the names of its identifiers
	routes []route
	allow  string // the methods, as in the header Allow
}

// maxIDs is the limit of identifiers in a path.
const maxIDs = 2

// mux returns a mux with a resource for each path of the table, and one for all others. It chooses by path alone, so that we answer
// other methods.
func (h *Handler) mux(table []route) *http.ServeMux {
	resources := map[string]*resource{"": {}}
	for _, r := range table {
		x := resources[r.Pattern]
		if x == nil {
			x = new(resource)
			for segment := range strings.SplitSeq(r.Pattern, "/") {
				if name, ok := strings.CutPrefix(segment, "{"); ok && segment != anyName {
					x.ids = append(x.ids, strings.TrimSuffix(name, "}"))
				}
			}
			resources[r.Pattern] = x
		}
		r.matched = r.Method + " " + r.Pattern
		x.routes = append(x.routes, r)
		if x.allow != "" {
			x.allow += ", "
		}
		x.allow += r.Method
		if r.Method == http.MethodGet {
			x.allow += ", " + http.MethodHead
		}
	}
	mux := http.NewServeMux()
	for pattern, x := range resources {
		switch pattern {
		case "":
			pattern = "/" // all others
		case "/":
			pattern = "/{$}"
		}
		mux.HandleFunc(strings.Replace(pattern, anyName, "{name...}", 1), func(w http.ResponseWriter, r *http.Request) { h.serve(x, w, r) })
	}
	return mux
}

// anyName stands for a segment that the handler checks itself.
const anyName = "{name}"

// parseIDs stores the identifiers in the path in the call, and reports whether they are any.
func (x *resource) parseIDs(c *call) bool {
	for i, name := range x.ids {
		var ok bool
		if c.ids[i], ok = formsvc.ParseID(c.r.PathValue(name)); !ok {
			return false
		}
	}
	return len(x.routes) > 0
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
