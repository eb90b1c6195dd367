// Package integration holds the tests and benchmarks that need more than the
// library: real DynamoDB-compatible servers, several processes, signals and
// lost connections. Package servers provides the servers; where one cannot be
// had, its tests are skipped with the reason.
package integration
