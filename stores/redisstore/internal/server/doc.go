// Package server sends scripts to one server and reads what they answer. It is
// what a store on one server and a quorum have in common.
package server
