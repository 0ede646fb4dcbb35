# gnuplot confusion.gp draws confusion.svg, confusion-dark.svg and confusion.png from confusion.dat
set encoding utf8
DATA = 'confusion.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 1610,1220 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'confusion.png'
    } else {
        set terminal svg noenhanced size 805,610 font 'sans-serif,13' background rgb paper
        set output dark ? 'confusion-dark.svg' : 'confusion.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set xlabel 'latent state, in the order of the patterns' textcolor rgb ink
    set xtics ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50, '60' 60, '70' 70, '80' 80, '90' 90) scale 0
    set ytics ('(0,0,*)' 0, '(0,3,*)' 3, '(0,6,*)' 6, '(0,9,*)' 9, '(1,2,*)' 12, '(1,5,*)' 15, '(1,8,*)' 18, '(2,1,*)' 21, '(2,4,*)' 24, '(2,7,*)' 27, '(3,0,*)' 30, '(3,3,*)' 33, '(3,6,*)' 36, '(3,9,*)' 39, '(4,2,*)' 42, '(4,5,*)' 45, '(4,8,*)' 48, '(5,1,*)' 51, '(5,4,*)' 54, '(5,7,*)' 57, '(6,0,*)' 60, '(6,3,*)' 63, '(6,6,*)' 66, '(6,9,*)' 69, '(7,2,*)' 72, '(7,5,*)' 75, '(7,8,*)' 78, '(8,1,*)' 81, '(8,4,*)' 84, '(8,7,*)' 87, '(9,0,*)' 90, '(9,3,*)' 93, '(9,6,*)' 96, '(9,9,*)' 99) scale 0
    set xtics add ('ignored' 101)
    set xtics rotate by 90 right
    set arrow from 100.5, graph 0 to 100.5, graph 1 nohead lc rgb muted
    unset key
    set border 15
    set size ratio 0.980392
    set xrange [-0.5:101.5]
    set yrange [99.5:-0.5]
    set cbrange [0:1]
    if (dark) { set palette defined (0 '#27475c', 1 '#8fd3ff') }
    if (!dark) { set palette defined (0 '#c6dbef', 0.3 '#85b8db', 1 '#08306b') }
    set colorbox
    set cbtics textcolor rgb ink
    plot DATA using 1:2:(0.5):(0.5):3 with boxxyerror fc palette
    unset output
}
