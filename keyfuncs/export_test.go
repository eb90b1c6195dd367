package keyfuncs

// Canonical is what Payload hashes.
var Canonical = canonical
