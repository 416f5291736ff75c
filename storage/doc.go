// Package storage has no code of its own but [Database]. Its subpackages are the stores that keep a service's data; this page
// helps to choose or write one.
//
// # Choosing a store
//
//   - [github.com/formsvc/toolkit/storage/sqlite] keeps everything in one file on one machine. Nothing has to be installed
//     or run. Start here.
//   - [github.com/formsvc/toolkit/storage/postgres] keeps everything in a PostgreSQL database that any number of nodes
//     share: for more than one machine, or if you already run one.
//   - [github.com/formsvc/toolkit/storage/memory] keeps everything until the process ends: for tests, and as the reference
//     for store authors.
//
// The same program works with each of them. Results, their order and errors are the same. The stores differ in where the
// data is kept and whether it outlives the process. A store that isn't imported isn't linked in, and neither is its driver.
//
// # Writing a store
//
// A store implements [github.com/formsvc/toolkit/formsvc.Store], which has the contract, and
// [github.com/formsvc/toolkit/webhook/delivery.Queue], from which the delivery engine takes its work. One type implements
// both, because the deliveries of an event are written in the same transaction as the change that raised it.
//
//   - Run [github.com/formsvc/toolkit/storage/storagetest] from the first day. It is public, tests any store, and reports
//     failures in the terms of the contract. Exclude categories of tests that can't hold by name and with a reason.
//   - Read package memory first: it is the contract in plain maps and slices, short enough to read whole.
//   - Make every method one atomic write. [github.com/formsvc/toolkit/formsvc.Change] has the events,
//     [github.com/formsvc/toolkit/formsvc.Webhook.Listens] says which webhooks get them, and
//     [github.com/formsvc/toolkit/formsvc.DeliveryID] returns the identifier of each delivery.
//   - Order the events of an account by when they become visible, not by their times or identifiers. A reader that follows
//     them must not miss an event that commits late. A store may show an event late, but never before the position of a
//     reader that has moved on. The events of all accounts together have such an order, too. Events about one response are
//     in the order of its changes: assign their positions while the response is locked.
//   - Deliveries, notices and digests are claimed with leases. If the holder of a lease reports back, the lease needs a
//     fencing token. A lease expires at a time that the caller names, so nothing has to look for lost ones.
//   - If data is on disk, encrypt the secrets and headers of webhooks.
//   - Create an identity with the store ([github.com/formsvc/toolkit/formsvc.NewID]) and keep it with the data: it tells a
//     blob store whose files it has.
//   - Check texts with [github.com/formsvc/toolkit/formsvc.CheckText] before writing anything, compare them byte by byte,
//     and truncate times to microseconds.
//
// A caching decorator is a store too: run the suite on it.
package storage
