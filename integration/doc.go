// Package integration holds the tests and benchmarks that need more than the
// library: real DynamoDB-compatible servers, several processes, signals and
// lost connections. Package servers provides the servers; the tests of a server
// that is unavailable are skipped, and say why.
package integration
