// Package egress says where webhooks may be sent: to public addresses, and to
// those that an operator allows. It keeps whoever may name a webhook's URL from
// reaching the service's own machine, its network and its cloud's metadata.
//
//	policy, err := egress.New(nil)
//	// handle err
//	dialer := &net.Dialer{Control: policy.Control}
//
// # Two checks
//
// [Policy.Control] is the one that protects. It judges each address that is
// about to be connected to, after name resolution and whatever the URL looked
// like. A name that changes its address between two attempts gains nothing.
//
// [Policy.CheckURL] is for saving a webhook, so that a mistake is told to the
// person who makes it. What it accepts may still be refused later.
//
// # What is refused
//
//   - IPv4: everything in the special-purpose registry of IANA, such as
//     loopback, private, link-local, shared (100.64.0.0/10), documentation and
//     benchmarking addresses, all of 0.0.0.0/8, multicast and reserved
//     addresses, and 168.63.129.16, which is public in form but is the platform
//     service of Azure.
//   - IPv6: everything outside 2000::/3, so unspecified, loopback,
//     IPv4-compatible, IPv4-translated, NAT64, unique local, link-local,
//     site-local and multicast addresses; within it, what the registry of IANA
//     reserves, such as Teredo, 6to4 and documentation addresses; and interface
//     identifiers of ISATAP.
//   - An IPv4-mapped address is treated as the IPv4 address in it.
//   - Addresses with a zone.
//   - Port 0. Public addresses also on all ports below 1024 but 80 and 443.
//   - Networks other than tcp4 and tcp6, and what cannot be parsed.
//
// Ranges in [Options.Allow] are exempt from the lists of addresses and ports.
//
// # What it cannot know
//
// A public address may lead back inside: the own public address, a load
// balancer's, or those of a NAT64 gateway whose prefix is not the well-known
// one. Only a firewall knows these.
//
// Control sees what is connected to. Through a proxy that is the proxy: use none,
// and none from the environment either. A connection that is kept open was
// checked when it was made, so keep idle ones for a short time only.
package egress
