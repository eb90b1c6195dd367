package middleware

// ForgetDefaultStores lets the next test open its own default stores.
func ForgetDefaultStores() {
	defaultStoresMu.Lock()
	defer defaultStoresMu.Unlock()
	clear(defaultStores)
}
