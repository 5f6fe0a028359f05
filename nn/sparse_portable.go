//go:build noasm || !amd64

package nn

// sparseProducts tells whether there is a sparseProduct here.
const sparseProducts = false

func sparseProduct(*float32, int, int, *uint32, *sparseEntry, *float32, *float32) {
	panic("nn: no sparse products here")
}
