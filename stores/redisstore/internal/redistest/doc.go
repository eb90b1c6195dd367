// Package redistest has the servers, the requests and the disturbances with
// which the tests of this module run.
package redistest
