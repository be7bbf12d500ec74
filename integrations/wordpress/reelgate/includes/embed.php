<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

/** Attributes of the shortcode, the hosted service's among them. Others of it are accepted without effect. */
const ATTRIBUTES = array(
	'id'          => '',
	'title'       => '',
	'width'       => '',
	'height'      => '',
	'no_annotate' => '',
	'autoplay'    => '',
	'loop'        => '',
	'controls'    => '',
	'cc_language' => '',
	'litemode'    => '',
);

/** Attributes of the block, all texts but the switches. */
const BLOCK_ATTRIBUTES = array(
	'id'          => array( 'type' => 'string' ),
	'title'       => array( 'type' => 'string' ),
	'width'       => array( 'type' => array( 'string', 'number' ) ),
	'height'      => array( 'type' => array( 'string', 'number' ) ),
	'no_annotate' => array( 'type' => 'boolean' ),
	'autoplay'    => array( 'type' => 'boolean' ),
	'litemode'    => array( 'type' => 'boolean' ),
);

/** [reelgate] and its block; those of the hosted service where its plug-in is not active, or the owner says so. */
function register_embeds() {
	$take_over = (bool) options()['take_over'];
	add_shortcode( 'reelgate', __NAMESPACE__ . '\\render_shortcode' );
	if ( $take_over || ! shortcode_exists( 'vdo' ) ) {
		add_shortcode( 'vdo', __NAMESPACE__ . '\\render_shortcode' );
	}
	if ( ! function_exists( 'register_block_type' ) ) {
		return;
	}
	$block = array( 'render_callback' => __NAMESPACE__ . '\\render_block', 'attributes' => BLOCK_ATTRIBUTES );
	register_block_type( 'reelgate/video', $block );
	$registry = \WP_Block_Type_Registry::get_instance();
	if ( $take_over && $registry->is_registered( 'vdo/block' ) ) {
		$registry->unregister( 'vdo/block' );
	}
	if ( ! $registry->is_registered( 'vdo/block' ) ) {
		$older = array( 'vdo_theme' => array( 'type' => 'string' ), 'vdo_version' => array( 'type' => 'string' ) );
		register_block_type( 'vdo/block', array( 'attributes' => BLOCK_ATTRIBUTES + $older ) + $block );
	}
}

function render_shortcode( $attributes ) {
	return render_video( shortcode_atts( ATTRIBUTES, (array) $attributes ) );
}

/** @param string $content what an older version of a block has saved: the text of a shortcode. */
function render_block( $attributes, $content = '' ) {
	$attributes = array_merge( ATTRIBUTES, array_intersect_key( (array) $attributes, ATTRIBUTES ) );
	if ( '' === (string) $attributes['id'] && '' === (string) $attributes['title'] && false !== strpos( $content, '[' ) ) {
		return do_shortcode( $content );
	}
	return render_video( $attributes );
}

/** The place of a video, with the tag that its script asks for an OTP with. */
function render_video( array $attributes ) {
	$video = strtolower( trim( (string) $attributes['id'] ) );
	if ( '' === $video && '' !== (string) $attributes['title'] ) {
		$video = find_by_title( (string) $attributes['title'] );
	}
	if ( ! is_video_id( $video ) ) {
		return editors_note( __( 'Reelgate: this video has no valid id. It is 32 characters long; copy it from the console.', 'reelgate' ) );
	}
	if ( '' === clean_server( options()['server'] ) ) {
		return editors_note( __( 'Reelgate: enter the address of your server in Settings → Reelgate.', 'reelgate' ) );
	}
	$settings = options();
	$width    = length_of( $attributes['width'] ) ?? length_of( $settings['width'] ) ?? 1280;
	$height   = length_of( $attributes['height'] ) ?? length_of( $settings['height'] );
	$data     = tagged( $video, (int) get_the_ID(), get_current_user_id(), is_on( $attributes['no_annotate'] ) );
	$player   = array_filter(
		array(
			'autoplay'   => is_on( $attributes['autoplay'] ) ? 'true' : '',
			'loop'       => is_on( $attributes['loop'] ) ? 'true' : '',
			'litemode'   => is_on( $attributes['litemode'] ) ? 'true' : '',
			'controls'   => in_array( $attributes['controls'], array( 'off', 'native' ), true ) ? $attributes['controls'] : '',
			'ccLanguage' => preg_match( '/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}$/D', (string) $attributes['cc_language'] ) ? $attributes['cc_language'] : '',
		)
	);
	wp_enqueue_script( 'reelgate' );
	return sprintf(
		'<div class="reelgate-video" style="position:relative;max-width:%dpx;%s;margin:0 auto;background:#000" data-reelgate="%s"><noscript>%s</noscript></div>',
		$width,
		null === $height ? 'aspect-ratio:16/9' : "height:{$height}px",
		esc_attr( wp_json_encode( array( 'tag' => $data, 'player' => (object) $player ) ) ),
		esc_html__( 'The video needs JavaScript to play.', 'reelgate' )
	);
}

/** A length in pixels; null for `auto` and whatever else is none. */
function length_of( $value ) {
	return preg_match( '/^\s*([1-9][0-9]{1,3})(?:px)?\s*$/D', (string) $value, $match ) ? (int) $match[1] : null;
}

/** `true`, `1` and every other text but these. */
function is_on( $value ) {
	return true === $value || ( is_scalar( $value ) && ! in_array( strtolower( trim( (string) $value ) ), array( '', '0', 'false', 'off', 'no' ), true ) );
}

/** For those who can mend it; visitors see nothing. */
function editors_note( $text ) {
	return current_user_can( 'edit_posts' ) ? '<p class="reelgate-note"><em>' . esc_html( $text ) . '</em></p>' : '';
}

/** The id of the first hit of a search, kept for an hour; an empty text: there is none. */
function find_by_title( $title ) {
	$key   = 'reelgate_title_' . md5( $title );
	$found = get_transient( $key );
	if ( is_string( $found ) ) {
		return $found;
	}
	$reply = call_api( 'GET', with_query( '/videos', array( 'q' => $title, 'limit' => 1, 'countUpTo' => 1 ) ) );
	$id    = is_wp_error( $reply ) ? '' : ( $reply['rows'][0]['id'] ?? '' );
	set_transient( $key, $id, '' === $id ? MINUTE_IN_SECONDS : HOUR_IN_SECONDS );
	return $id;
}

function register_script() {
	wp_register_script( 'reelgate', plugins_url( 'assets/lesson.js', PLUGIN_FILE ), array(), VERSION, true );
	$settings = options();
	$values   = array(
		'server' => clean_server( $settings['server'] ),
		// Without a scheme and host, so that a page plays under each of the site's names.
		'ajax'   => wp_parse_url( admin_url( 'admin-ajax.php' ), PHP_URL_PATH ),
		'speeds' => array_values( array_filter( array_map( 'floatval', explode( ',', (string) $settings['speeds'] ) ) ) ),
		'texts'  => array(
			'reload'  => __( 'Reload the page', 'reelgate' ),
			'again'   => __( 'Try again', 'reelgate' ),
			'offline' => __( 'The video could not be opened. Check your connection, then try again.', 'reelgate' ),
		),
	);
	wp_add_inline_script( 'reelgate', 'window.reelgateSite = ' . wp_json_encode( $values, JSON_HEX_TAG | JSON_HEX_AMP ) . ';', 'before' );
}
