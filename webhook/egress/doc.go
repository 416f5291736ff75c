// Package egress decides where webhooks may be sent: to public addresses, and to those that an
// operator allows. It prevents users who set a webhook's URL from reaching the service's own
// machine, its network and its cloud's metadata.
//
//	policy, err := egress.New(nil)
//	// handle err
//	dialer := &net.Dialer{Control: policy.Control}
//
// # Two checks
//
// [Policy.Control] is the one that protects. It checks each address right before the connection,
// after name resolution, whatever the URL is. So a name that changes its address between two
// attempts can't bypass it.
//
// [Policy.CheckURL] is for saving a webhook, so that users see a mistake at once. A URL that it
// accepts may still be refused later.
//
// # What is refused
//
//   - IPv4: everything in the special-purpose registry of IANA, such as loopback, private,
//     link-local, shared (100.64.0.0/10), documentation and benchmarking addresses. Also all of
//     0.0.0.0/8, multicast and reserved addresses, and 168.63.129.16, which looks public but is the
//     platform service of Azure.
//   - IPv6: everything outside 2000::/3, so unspecified, loopback, IPv4-compatible,
//     IPv4-translated, NAT64, unique local, link-local, site-local and multicast addresses. Within
//     2000::/3, what the registry of IANA reserves, such as Teredo, 6to4 and documentation
//     addresses, and interface identifiers of ISATAP.
//   - An IPv4-mapped address is treated as the IPv4 address in it.
//   - Addresses of this machine's interfaces, also public ones.
//   - Addresses with a zone.
//   - Port 0. For public addresses, also all ports below 1024 except 80 and 443.
//   - Networks other than tcp4 and tcp6, and addresses that can't be parsed.
//
// Ranges in [Options.Allow] are exempt from the lists of addresses and ports.
//
// # What it cannot know
//
// A public address may lead back inside: one that a router translates to this machine, a load
// balancer's, or those of a NAT64 gateway with a prefix of its own. Block these with a firewall.
//
// Control sees the address of the connection. With a proxy that is the proxy's: use none, also none
// from the environment. An open connection was checked when it was established, so keep idle ones
// for a short time only.
package egress
