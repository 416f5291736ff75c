// Command formbench measures the cost of API requests, webhook deliveries and files. It compares them with handlers that
// show the limits, and with PocketBase and River. It needs Linux.
//
//	make bench BENCHFLAGS="-only create -rounds 1"
//
// # What is measured
//
//   - create: POST of a response with five answers to a campaign with one webhook. Each stores a response, an event and a
//     delivery durably; nothing delivers. Every cell has its own database, which afterwards must hold exactly the
//     acknowledged responses. "ceiling" is net/http and encoding/json and stores nothing; "each" is the API with one
//     transaction per request.
//   - read: GET of one response, and of the newest 20 with the total.
//   - checks: create without a quota, with one, and with a quota and a new Idempotency-Key for every request.
//   - overload: the goodput (responses created) when clients ask for more than the server can process, on SQLite. Some
//     connections retry at once when a request is refused, some wait for Retry-After. In an open loop, requests come at ten
//     times the rate that 64 connections reach, and are dropped after a second without a free connection. The capacity is
//     limited by one processor, which leaves the others to the clients, or by a database that takes 2 ms for a response.
//     "unbounded" works on all requests at once.
//
// Deliveries are compared with the reference, a loop that signs and posts the same payload from memory, before and after
// every cell. They are also compared with River, a job queue, on the same kind of database:
//
//   - steady: responses are accepted one by one while the same process delivers. The rate is the receiver's, from the first
//     arrival to the last; latencies are from commit to arrival.
//   - drain: 20,000 deliveries are queued before the process starts; while they are accepted, nothing delivers.
//   - latency: 50 events a second.
//   - isolation: the rate and latency of healthy endpoints beside one that hangs, beside as many hostile ones, and among
//     healthy ones. The compared scenes take turns.
//   - backlog: the time to find and claim deliveries of nine endpoints, with and without a million due deliveries of a
//     tenth.
//   - idle: a process that has nothing to do.
//
// The receiver is a separate process that checks every signature; a wrong one fails the run. Afterwards every delivery must
// be delivered in the store, with an attempt that says so.
//
//   - files: uploads (raw and as a form) and downloads of 100 MB, one after the other over one connection, beside an
//     SQLite store. On a disk they are compared with "copy", a handler with io.Copy between the request and a file, which
//     neither hashes nor syncs; "copy, hash, sync" does both. On S3 they are compared with "minio-go", where this program
//     uses the S3 server itself. The S3 server is versitygw, named by FORMSVC_TEST_VERSITYGW, on the same disk. This part
//     also measures the growth of the API server's memory for one file of 1 GiB up and down, and for 50 concurrent
//     uploads. The growth is over the memory for a file of 1 MB. Every acknowledged upload must have the hash of the sent
//     bytes, and every download the length; one download is compared as a whole.
//
// PocketBase is a program of the module in the directory peers, like River. It has the settings and collections that its
// documentation recommends:
//
//   - peers-create: a response is one row in PocketBase, which a power cut may lose (synchronous NORMAL), and which anyone
//     may create. Then the same with a token; with FULL; and with FULL as a batch of response, event and delivery, which is
//     what the API stores for each. Finally new responses come at half of PocketBase's rate in an open loop, with latencies
//     from when they were due.
//   - peers-read: GET of one of 200,000 responses, the newest 20 with the total, and the page half-way through them.
//     PocketBase sorts by @rowid, for which it has an index, and by the field created, for which it has none unless you add
//     it.
//   - peers-files: one upload of 1 GiB.
//   - peers-start: from the start of the process to the first response.
//   - peers-postgres: creates on Postgres beside "single", a handler that checks nothing and stores response, event and
//     delivery with one statement.
//   - scale, only when named: the same requests, claims and outcomes on a large and a small installation, in turn. The large
//     one has ten million responses (two million on SQLite) with an event each, and a million due deliveries; the small one
//     has ten thousand responses. The service creates the records; they are stored by COPY or large transactions, and
//     samples of them read back through the service before anything is measured.
//
// # Output
//
// The report has Markdown tables with the median and the range of the rounds, ratios within rounds, and goals. -out writes
// every cell in the format of Go benchmarks as soon as it is measured, so that benchstat compares runs:
//
//	benchstat -col /system -row .name,/what,/conns run.txt
//	benchstat before.txt after.txt
//
// -chart draws an SVG for each table. -render creates tables, goals and charts from the -out files of earlier runs.
//
// # Method
//
// Systems take turns within each round, and each cell starts a process of its own. The load of requests is a closed loop:
// every connection sends its next request after the last response. In an open loop latencies begin when a request was due.
// Percentiles are exact, from all samples.
//
// This program generates the load itself: vegeta takes four times the CPU time for a request. On a machine that both share,
// the same server reaches less than half of its rate with vegeta, whose latencies begin when a request is sent.
//
// CPU time per request says more than requests per second. It is the kernel's, in steps of 10 ms: cells much shorter than a
// second make it coarse. The machine's time is sampled and that of processes is not, so their difference, the time of
// everything else, can be a little below zero. Writes that the kernel delays count as everything else.
//
// # Source code
//
// Each part has a package below internal: requests, deliver, files, peers and scale. It has the order of the cells, and
// notes each with its figures in bench, which also has the flags and names. Packages result and goals turn the cells into
// the report. Packages worker and pocketbase have the protocols between this program and the one of the module peers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are the input and output of the program: results go to out, progress to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run returns the exit status: 0, 1 when a measurement failed, 2 when the flags are invalid.
func run(ctx context.Context, args []string, std streams) int {
	fail := func(status int, err error) int {
		if err == nil {
			return 0
		}
		_, _ = fmt.Fprintln(std.err, "formbench:", err)
		return status
	}
	if len(args) == 1 {
		if known, err := process.Main(ctx, args[0], std.in, std.out, std.err); known {
			return fail(1, err)
		}
	}
	opts, err := bench.ParseOptions(args, std.err)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return fail(2, err)
	}
	if opts.Render != "" {
		return fail(1, render(&opts, std.out))
	}
	return fail(1, runBench(ctx, &bench.Bench{Options: opts, Log: std.err}, std.out))
}
