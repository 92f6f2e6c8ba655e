// Package pagetest tests the admin endpoint's web page in a real browser, headless Chromium. It is a module of its own, so that
// nobody who requires millrace hears of a browser.
//
// The tests look for the browser in the PATH. As root they install Debian's package chromium-headless-shell where it is missing;
// otherwise they fail and say what to install.
package pagetest
