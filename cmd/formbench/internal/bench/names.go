package bench

// The systems that are compared. Others are known to one part only.
const (
	CeilingSystem = "ceiling" // decodes and encodes, stores nothing
	APISystem     = "formsvc" // the API, concurrent writes share commits
	EachSystem    = "each"    // the API, one transaction per request

	QuotaSystem = "quota"      // the API with a quota
	KeyedSystem = "quota, key" // … and an Idempotency-Key with each request

	UnboundedSystem = "unbounded" // the API with no bound on the requests that are worked on

	CopySystem    = "copy"             // io.Copy between the request and a file
	CarefulSystem = "copy, hash, sync" // the same with a hash, durable when it answers

	SingleSystem = "single" // a handler with one statement per request

	ReferenceSystem = "reference" // signs and posts from memory
)

// The stores that the API is measured on.
const (
	SQLiteStore   = "sqlite"
	PostgresStore = "postgres"
)

// The parts of a run.
const (
	CreatePart = "create"
	ReadPart   = "read"
	DepthPart  = "depth"
	ChecksPart = "checks"

	SteadyPart    = "steady"
	DrainPart     = "drain"
	LatencyPart   = "latency"
	IsolationPart = "isolation"
	BacklogPart   = "backlog"
	IdlePart      = "idle"

	DeliverPart = "deliver" // stands for all that deliver

	FilesPart    = "files"
	OverloadPart = "overload"

	peersPart        = "peers" // stands for all of these
	PeerCreatePart   = "peers-create"
	PeerReadPart     = "peers-read"
	PeerFilesPart    = "peers-files"
	PeerStartPart    = "peers-start"
	PeerPostgresPart = "peers-postgres"

	ScalePart = "scale" // takes long and is measured only when it is named
)

// The environment variables that name what else is needed.
const (
	PostgresEnv = "FORMSVC_TEST_POSTGRES"  // the URL of a Postgres server
	S3Env       = "FORMSVC_TEST_VERSITYGW" // the path of the program versitygw, an S3 server that keeps every object as a plain file
)

// The sizes of what is read.
const (
	PageSize      = 20
	SmallCampaign = 1_000        // responses
	MinFill       = 2 * PageSize // is enough for the pages that are read
)

// DefaultCharts is where the charts are that BENCHMARKS.md shows, seen from it.
const DefaultCharts = "cmd/formbench/charts"

// StoreTitle returns how a store is spelled in titles.
func StoreTitle(store string) string {
	switch store {
	case SQLiteStore:
		return "SQLite"
	case PostgresStore:
		return "Postgres"
	}
	return store
}
