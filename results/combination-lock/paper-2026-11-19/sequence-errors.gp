# gnuplot sequence-errors.gp draws sequence-errors.svg, sequence-errors-dark.svg and sequence-errors.png from sequence-errors.dat
set encoding utf8
DATA = 'sequence-errors.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 1240,780 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'sequence-errors.png'
    } else {
        set terminal svg noenhanced size 620,390 font 'sans-serif,13' background rgb paper
        set output dark ? 'sequence-errors-dark.svg' : 'sequence-errors.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set xlabel 'error per step of an episode' textcolor rgb ink
    set ylabel 'trajectories' textcolor rgb ink
    set logscale x
    set format x '%g'
    set xrange [1e-07:0.1]
    set yrange [0:1394.4]
    set key outside top center horizontal
    set ytics 0, 200, 996
    set grid ytics lc rgb line
    plot DATA index 1 using 1:2:(0):(55.776):4 with vectors nohead lw 0.5 lc rgb variable notitle, \
         '' index 0 using 1:3 with fillsteps fs transparent solid 0.12 lc rgb 0x0072b2 notitle, '' index 0 using 1:3 with steps lw 2 lc rgb 0x0072b2 title 'refinement 1', \
         '' index 0 using 1:4 with fillsteps fs transparent solid 0.12 lc rgb 0xe69f00 notitle, '' index 0 using 1:4 with steps lw 2 lc rgb 0xe69f00 title 'refinement 4', \
         '' index 0 using 1:5 with fillsteps fs transparent solid 0.12 lc rgb 0x009e73 notitle, '' index 0 using 1:5 with steps lw 2 lc rgb 0x009e73 title 'refinement 8', \
         '' index 0 using 1:6 with fillsteps fs transparent solid 0.12 lc rgb 0xcc79a7 notitle, '' index 0 using 1:6 with steps lw 2 lc rgb 0xcc79a7 title 'refinement 12', \
         '' index 0 using 1:7 with fillsteps fs transparent solid 0.12 lc rgb 0x56b4e9 notitle, '' index 0 using 1:7 with steps lw 2 lc rgb 0x56b4e9 title 'final'
    unset output
}
