//go:build !race

package chat

const raceDetector = false
