// Package bench is what the parts of a run share: its flags, the names of systems, stores and parts, and where figures
// and warnings go.
package bench

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// A Bench is what all parts of a run share.
type Bench struct {
	Options
	Self      string         // this program, which is also the server
	Log       io.Writer      // progress
	Out       *result.Writer // nil for none
	S3Program string         // "" when there is none
	Notes     []string       // what readers of the figures must know
	Cells     result.Cells   // what was measured so far
}

// Warn notes what readers of the figures must know.
func (b *Bench) Warn(note string) {
	b.Notes = append(b.Notes, note)
	_, _ = fmt.Fprintln(b.Log, "formbench:", note)
}

// Note keeps a cell that was measured.
func (b *Bench) Note(c *result.Cell) error {
	b.Cells = append(b.Cells, *c)
	figures := make([]string, min(len(c.Figures), 6))
	for i := range figures {
		figures[i] = result.Spell(c.Figures[i].Value) + " " + c.Figures[i].Unit
	}
	_, _ = fmt.Fprintf(b.Log, "%s: %s\n", c, strings.Join(figures, ", "))
	if b.Out == nil {
		return nil
	}
	return b.Out.Write(c)
}

// Profile names the file of the cell's CPU profile, if there is to be one.
func (b *Bench) Profile(c *result.Cell) string {
	if b.Profiles == "" {
		return ""
	}
	return filepath.Join(b.Profiles, c.File(".pprof"))
}

// Rotated returns the list with another beginning in each round, so that no
// system always comes after the same one.
func Rotated[T any](list []T, round int) []T {
	at := round % max(len(list), 1)
	return slices.Concat(list[at:], list[:at])
}

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

	MinioSystem = "minio-go" // no server between the generator and S3

	RiverSystem = "River" // a job queue, with a worker that signs and posts
)

// PocketBase, which is as it comes where nothing else is said: synchronous NORMAL, and anyone may use its collections.
const (
	PocketSystem  = "PocketBase"
	TokenSystem   = "PocketBase, token"               //nolint:gosec // a name: only a superuser may
	FullSystem    = "PocketBase FULL"                 // what is answered is on the disk
	BatchSystem   = "PocketBase FULL, batch of three" // response, event and delivery in one transaction
	CreatedSystem = "PocketBase, by created"          // sorted by a field instead of @rowid, which has an index

	OffsetSystem = "formsvc, offset" // pages by number instead of by cursor
)

// What the cells of several parts do.
const (
	CreateWhat = "create"
	GetWhat    = "get one"
	ListWhat   = "list of 20"
	DueWhat    = "create, open loop"
	PageWhat   = "far page" // half-way through the campaign

	UploadWhat   = "upload"
	FormWhat     = "upload as a form" // multipart/form-data
	DownloadWhat = "download"
	LargeWhat    = "large file" // up and down again
	BurstWhat    = "burst"      // uploads at once

	PeakWhat   = "peak"   // as many as are served best
	EagerWhat  = "eager"  // who is refused asks again at once
	PoliteWhat = "polite" // who is refused waits for Retry-After
	OpenWhat   = "open"   // requests come at ten times the peak rate, whatever the answers
)

// Where deliveries are measured.
const (
	WithinWhat = "engine in the same process"
	AcrossWhat = "engine in another process"

	TenScene     = "ten healthy"
	HangScene    = "nine beside a hanging one"
	TwentyScene  = "twenty healthy"
	HostileScene = "ten beside ten hostile"
	ClosedLoop   = ", as fast as possible"
	OpenLoop     = ", 500 events/s"

	NeverWhat = "never analyzed"
	EmptyWhat = "analyzed when empty"
)

// The stores that the API is measured on.
const (
	SQLiteStore   = "sqlite"
	PostgresStore = "postgres"

	DiskPlace = "disk" // of files
	S3Place   = "S3"

	ProcessorPlace = "one processor" // bounds the capacity of the server
	DatabasePlace  = "slow database"
)

// The parts of a run.
const (
	CreatePart = "create"
	ReadPart   = "read"
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
	SizesPart = "sizes" // what scale stores
)

// The environment variables that name what else is needed.
const (
	PostgresEnv = "FORMSVC_TEST_POSTGRES"  // the URL of a Postgres server
	S3Env       = "FORMSVC_TEST_VERSITYGW" // the path of the program versitygw, an S3 server that keeps every object as a plain file
)

// The sizes of what is read.
const (
	PageSize = 20
	MinFill  = 2 * PageSize // is enough for the pages that are read
)
